"""Requests to webhooks are signed; the example of the contract's page verifies them, and no forgery."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from sda_platform.access_settings import AccessSettings
from sda_platform.delivery.configured import chosen_subscriber, subscriber_of
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import SubscriberMisconfigured, SubscriberUnavailable
from sda_platform.delivery.webhook_subscriber import DeliveryRetries, WebhookSubscriber
from sda_platform.lake.errors import Misconfigured
from sda_platform.observability.vitals.watch import Receivers
from sda_platform.orchestration.webhooks import SigningKeys
from sda_platform.settings import Settings
from sda_platform_tests.support.failure_webhook import failure_webhook
from sda_platform_tests.support.subscriber_contract import entry
from sda_platform_tests.support.webhook_example import is_signed
from sda_platform_tests.support.webhook_receiver import receiving

NOW_S = 1_700_000_000.0
OLD, NEW = bytes(range(32)), bytes(range(32, 64))
RETRIES = DeliveryRetries(attempts=1)


def written(**keys: bytes) -> str:
    return " ".join(f"{name}:whsec_{base64.b64encode(secret).decode()}" for name, secret in keys.items())


def headers(body: bytes, message_id: str = "b1", **keys: bytes) -> dict[str, str]:
    made = SigningKeys("SDA_SUBSCRIBER_KEYS", written(**(keys or {"new": NEW}))).headers(message_id, body, NOW_S)
    return {name.lower(): value for name, value in made.items()}


def test_the_signature_is_that_of_the_standards_own_example() -> None:
    """The example of the specification of Standard Webhooks (webhook "msg_p5jXN8AQM9LWM0D4loKWxJek")."""
    keys = SigningKeys("SDA_SUBSCRIBER_KEYS", "k:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = keys.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330)
    assert made["Webhook-Signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_takes_what_is_signed_with_its_key_and_answers_401_to_the_rest__S9(tmp_path: Path) -> None:
    seen: list[str] = []

    def accepts(sent: Mapping[str, str], body: bytes) -> bool:
        seen.append(sent.get("webhook-id", ""))
        return is_signed(sent, body, {"new": NEW}, NOW_S + 200)

    with receiving(SqliteSubscriber(tmp_path / "received.sqlite")) as receiver:
        receiver.accepts = accepts
        signing = SigningKeys("SDA_SUBSCRIBER_KEYS", written(new=NEW))
        subscriber = WebhookSubscriber(f"{receiver.url}?token=s", keys=signing, retries=RETRIES, now_s=lambda: NOW_S)
        assert subscriber.apply("b1", [entry(0)]) == ["applied"]
        assert subscriber.mark("x").count == 1
        assert seen == ["GET batches/b1", "b1", "GET mark?prefix=x"]
        for unsigned in (
            WebhookSubscriber(receiver.url, retries=RETRIES),
            WebhookSubscriber(receiver.url, keys=signing, retries=RETRIES, now_s=lambda: NOW_S - 200),
            WebhookSubscriber(receiver.url, keys=SigningKeys("", written(new=OLD)), retries=RETRIES),
        ):
            with pytest.raises(SubscriberUnavailable, match="401"):
                unsigned.apply("b2", [entry(1)])
        assert len(receiver.store.receipts()) == 1


def test_a_signed_request_that_another_repeats_in_time_changes_nothing__S9(tmp_path: Path) -> None:
    seen: list[tuple[Mapping[str, str], bytes]] = []

    def accepts(sent: Mapping[str, str], body: bytes) -> bool:
        seen.append((dict(sent), body))
        return is_signed(sent, body, {"new": NEW}, NOW_S + 299)

    with receiving(SqliteSubscriber(tmp_path / "received.sqlite")) as receiver:
        receiver.accepts = accepts
        signing = SigningKeys("SDA_SUBSCRIBER_KEYS", written(new=NEW))
        subscriber = WebhookSubscriber(receiver.url, keys=signing, retries=RETRIES, now_s=lambda: NOW_S)
        subscriber.apply("b1", [entry(0)])
        subscriber.apply("b2", [entry(1)])
        held = receiver.store.receipts()
        first = next((sent, body) for sent, body in seen if sent["webhook-id"] == "b1")
        again = httpx.post(f"{receiver.url}/batches", headers=first[0], content=first[1])
        assert again.json()["receipts"][0]["outcome"] == "applied", "the first answer"
        renamed = {**first[0], "idempotency-key": "b3"}
        assert httpx.post(f"{receiver.url}/batches", headers=renamed, content=first[1]).status_code == 401
        assert receiver.store.receipts() == held


@pytest.mark.parametrize(
    ("change", "body", "late_s"),
    [
        ({}, b'{"entries": [1]}', 0.0),
        ({"webhook-id": "b2"}, b"{}", 0.0),
        ({"webhook-timestamp": "1700000100"}, b"{}", 0.0),
        ({}, b"{}", 301.0),
        ({}, b"{}", -301.0),
        ({"webhook-timestamp": "soon"}, b"{}", 0.0),
        ({"webhook-key-id": "old"}, b"{}", 0.0),
        ({"webhook-key-id": "none"}, b"{}", 0.0),
        ({"webhook-key-id": ""}, b"{}", 0.0),
        ({"webhook-signature": "v1,"}, b"{}", 0.0),
        ({"webhook-signature": "v1,é"}, b"{}", 0.0),
        ({"webhook-signature": ""}, b"{}", 0.0),
    ],
)
def test_what_was_altered_or_is_old_is_refused__S9(change: dict[str, str], body: bytes, late_s: float) -> None:
    known = {"new": NEW, "old": OLD}
    assert is_signed(headers(b"{}"), b"{}", known, NOW_S + 299)
    assert not is_signed({**headers(b"{}"), **change}, body, known, NOW_S + late_s)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-key-id", "webhook-signature"])
def test_an_unsigned_request_is_refused(missing: str) -> None:
    sent = headers(b"{}")
    del sent[missing]
    assert not is_signed(sent, b"{}", {"new": NEW}, NOW_S)


def test_while_a_key_is_changed_receivers_with_either_key_accept() -> None:
    sent = headers(b"{}", old=OLD, new=NEW)
    for known in ({"old": OLD}, {"new": NEW}, {"old": OLD, "new": NEW}, {"old": bytes(32), "new": NEW}):
        assert is_signed(sent, b"{}", known, NOW_S)
    assert not is_signed(sent, b"{}", {"old": NEW, "new": OLD}, NOW_S)


def test_a_file_of_keys_is_its_owners_alone_and_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(written(old=OLD) + "\n")
    os.chmod(file, 0o600)  # noqa: PTH101
    keys = SigningKeys("SDA_SUBSCRIBER_KEYS", str(file))
    assert keys.headers("b", b"", NOW_S)["Webhook-Key-Id"] == "old"
    file.write_text(written(new=NEW, old=OLD))
    assert keys.headers("b", b"", NOW_S)["Webhook-Key-Id"] == "new old"
    for mode in (0o640, 0o604, 0o620):
        file.chmod(mode)
        with pytest.raises(Misconfigured, match=f"SDA_SUBSCRIBER_KEYS: others may use {file} .mode 0{mode:o}.: chmod"):
            keys.headers("b", b"", NOW_S)


def test_a_file_of_keys_that_is_away_holds_alerts_back_and_loses_none(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.touch(0o600)
    with receiving(SqliteSubscriber(tmp_path / "received.sqlite")) as receiver:
        subscriber = WebhookSubscriber(receiver.url, keys=SigningKeys("SDA_SUBSCRIBER_KEYS", str(file)))
        file.unlink()
        with pytest.raises(SubscriberUnavailable, match=r"cannot be read: .*No such file"):
            subscriber.apply("b1", [entry(0)])
        assert receiver.requests == []


@pytest.mark.parametrize(
    "keys", ["hunter2", "k:hunter2hunter2hunter2hunter2hunter2", "k:whsec_aHVudGVyMg==", "k:whsec_a", "keys.txt", "/no"]
)
def test_unusable_keys_are_refused_before_anything_starts_and_not_shown(tmp_path: Path, keys: str) -> None:
    settings = Settings(
        home=tmp_path,
        subscriber="https://hook.example/in",
        access=AccessSettings(subscriber_keys=keys, notice_keys=keys),
    )
    with pytest.raises(SubscriberMisconfigured, match="SDA_SUBSCRIBER_KEYS") as refused:
        subscriber_of(settings)
    with pytest.raises(Misconfigured, match="SDA_NOTICE_KEYS"):
        Receivers.of(settings)
    assert "hunter2" not in str(refused.value) + repr(settings)


@pytest.mark.parametrize("host", ["hook.example", "10.0.0.1", "[2001:db8::1]", "localhost.example", "127.0.0.1.com"])
def test_plain_http_is_for_this_machine_unless_it_is_allowed__S9(tmp_path: Path, host: str) -> None:
    url = f"http://me:secret@{host}/in?key=secret"
    with pytest.raises(SubscriberMisconfigured, match=r"SDA_SUBSCRIBER: .*write https://") as refused:
        chosen_subscriber(url, tmp_path)
    assert "secret" not in str(refused.value)
    for variable, settings in (
        ("SDA_FAILURE_WEBHOOK", Settings(home=tmp_path, failure_webhook=url)),
        ("SDA_ESCALATION_WEBHOOK", Settings(home=tmp_path, escalation_webhook=url)),
    ):
        with pytest.raises(Misconfigured, match=f"{variable}: .*write https://"):
            Receivers.of(settings)
    allowing = Settings(home=tmp_path, subscriber=url, failure_webhook=url, access=AccessSettings(plain_http=True))
    assert isinstance(subscriber_of(allowing), WebhookSubscriber)
    assert Receivers.of(allowing).first.url == url
    for here in ("127.0.0.1", "localhost", "[::1]"):
        assert isinstance(chosen_subscriber(f"http://{here}:1/in", tmp_path), WebhookSubscriber)


def test_notices_are_signed_with_their_own_keys(tmp_path: Path) -> None:
    with failure_webhook() as receiver:
        access = AccessSettings(notice_keys=written(n=NEW))
        webhook = Receivers.of(Settings(home=tmp_path, failure_webhook=receiver.url, access=access)).first
        assert webhook.post("notice-1", {"text": "é"}) is None
    ((sent, body),) = receiver.raw
    assert sent["webhook-id"] == "notice-1"
    assert is_signed(sent, body, {"n": NEW}, float(sent["webhook-timestamp"]))
