"""Channels of notification against real servers: what arrives, under which key, and what a failure reveals."""

import io
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.lake.errors import Misconfigured
from sda_platform.notification.channels import NotTaken, send, service_of, without_secrets
from sda_platform.notification.due import DueAlert
from sda_platform.notification.message import PeopleMessage, message_of
from sda_platform.notification.notify_file import ChannelEntry
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook
from sda_platform_tests.support.hostile import HOSTILE
from sda_platform_tests.support.mail_server import mail_server
from sda_platform_tests.support.segments import START_NS, after

MESSAGE = PeopleMessage("a-key", "red begun: ISS – DEB", "red, begun: ISS (25544) – DEB (5)", "red")
SLACK = f"slack://T1JJ3T3L2/A1BRTD4JD/{'T' * 24}/#ops"
ENTRY = ChannelEntry(url_variable="A_CHANNEL")


@pytest.fixture
def webhook() -> Iterator[FailureWebhook]:
    with failure_webhook() as server:
        yield server


def sent(monkeypatch: pytest.MonkeyPatch, url: str, message: PeopleMessage = MESSAGE) -> NotTaken | None:
    monkeypatch.setenv("A_CHANNEL", url)
    return send("desk", ENTRY, message)


def port_of(server: FailureWebhook) -> int:
    return int(server.server_address[1])


def test_mail_arrives_with_the_text_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as server:
        assert sent(monkeypatch, server.url) is None
        (mail,) = server.messages
        assert (mail["Subject"], mail["To"], mail["Idempotency-Key"]) == (MESSAGE.title, "desk@example.org", "a-key")
        body = mail.get_body(("plain", "html"))
        assert body is not None and "red, begun: ISS (25544) – DEB (5)" in body.get_content()
        server.refusal = "554 no mail from you"
        problem = sent(monkeypatch, server.url)
        assert problem and "desk@" not in problem.reason and problem.is_refused and "554" in problem.reason
        server.refusal = "451 later"
        problem = sent(monkeypatch, server.url)
        assert problem and not problem.is_refused


def test_a_webhook_gets_the_key_as_a_header(monkeypatch: pytest.MonkeyPatch, webhook: FailureWebhook) -> None:
    assert sent(monkeypatch, f"json://127.0.0.1:{port_of(webhook)}/hook?-token=s3cret") is None
    ((key, content),) = webhook.received
    assert (key, content["title"], content["type"]) == ("a-key", MESSAGE.title, "failure")
    assert MESSAGE.body in content["message"]


def test_a_webhook_gets_the_facts_of_each_alert_beside_the_text__48(
    monkeypatch: pytest.MonkeyPatch, webhook: FailureWebhook
) -> None:
    alert = {
        "event_id": "e-1", "sequence": 2, "risk": "red", "norad_id_1": 25544, "norad_id_2": None,
        "object_name_1": "ISS (ZARYA)", "object_name_2": "A\nB", "tca_time_ns": after(3600), "miss_distance_km": 0.2,
        "collision_probability": 3e-4, "stated_probability": None, "stated_by": None, "classification": "C",
    }  # fmt: skip
    message = message_of("desk", [DueAlert(alert, "begun")], [], START_NS, "https://sda.example.org")
    assert message is not None
    assert sent(monkeypatch, f"json://127.0.0.1:{port_of(webhook)}/hook", message) is None
    ((key, content),) = webhook.received
    assert (content["key"], content["level"]) == (key, "red")
    assert content["alerts"] == [{
        "event_id": "e-1", "sequence": 2, "level": "red", "change": "begun", "norad_id_1": 25544, "norad_id_2": None,
        "object_name_1": "ISS (ZARYA)", "object_name_2": "A B", "tca_utc": "2024-11-01T01:00:00Z",
        "miss_distance_km": 0.2, "collision_probability": 3e-4, "stated_probability": None, "stated_by": None,
        "link": "https://sda.example.org/conjunctions/e-1", "classification": "C", "data_mode": None,
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"rule": "stated_by_other"}, "the messages that it rested on count no more, or state less"),
        ({"rule": "probability"}, "by the newest states it is below all levels"),
        ({"rule": "probability", "status": "closed"}, "its TCA has passed"),
    ],
)
def test_a_message_says_why_an_alert_is_withdrawn(facts: dict[str, str], why: str) -> None:
    alert = {
        "event_id": "e-1", "sequence": 2, "risk": "red", "norad_id_1": 25544, "norad_id_2": 5, "status": "open",
        "object_name_1": "ISS (ZARYA)", "object_name_2": "DEB", "tca_time_ns": after(3600), "miss_distance_km": 0.2,
        "collision_probability": 3e-4, "stated_probability": None, "stated_by": None, **facts,
    }  # fmt: skip
    message = message_of("desk", [DueAlert(alert, "withdrawn")], [], START_NS)
    assert message is not None
    assert f"last miss 0.200 km, Pc 3.0e-04; {why}" in message.body


def test_ntfy_gets_title_text_and_key(monkeypatch: pytest.MonkeyPatch, webhook: FailureWebhook) -> None:
    webhook.statuses.append(200)
    assert sent(monkeypatch, f"ntfy://127.0.0.1:{port_of(webhook)}/alerts") is None
    ((_, content),) = webhook.received
    assert (content["topic"], content["title"]) == ("alerts", MESSAGE.title)
    assert "Message a-key" in content["message"]


def test_a_pager_merges_repetitions_by_the_key() -> None:
    service = service_of("pager", "pagerduty://integration@token/sda/alerts", key="a-key")
    assert service.dedup == "a-key"


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 429, 500, 503])
def test_a_failure_names_the_reason_and_no_part_of_the_address(
    monkeypatch: pytest.MonkeyPatch, webhook: FailureWebhook, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    webhook.statuses.append(status)
    written = io.StringIO()
    of_process = logging.StreamHandler(written)  # as a process has one for all that its libraries log
    monkeypatch.setattr(logging.getLogger(), "handlers", [of_process])
    url = f"json://user:passw0rd@127.0.0.1:{port_of(webhook)}/a/t0ken-in-path?+X-Api-Key=k3y-in-option"
    problem = sent(monkeypatch, url)
    assert problem and str(status) in problem.reason and not webhook.received
    assert problem.is_refused == (status in (400, 413)), "what is about the address, or passes, is repeated"
    said = problem.reason + written.getvalue() + "".join(capfd.readouterr())
    assert not [part for part in ("passw0rd", "t0ken-in-path", "k3y-in-option") if part in said]


def test_what_cannot_be_sent_is_a_reason_and_raises_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        free = silent.getsockname()[1]
    problems = [sent(monkeypatch, url) for url in (f"json://127.0.0.1:{free}/", "nonsense://x/y", "", "slack://a")]
    assert all(problem and problem.reason and not problem.is_refused for problem in problems)
    readable = tmp_path / "url"
    readable.write_text("json://127.0.0.1/t0ken")
    readable.chmod(0o644)
    problem = send("desk", ChannelEntry(url_file=str(readable)), MESSAGE)
    assert problem and "chmod 600" in problem.reason and "t0ken" not in problem.reason


def test_an_address_without_tls_is_refused_beyond_this_machine() -> None:
    for url in ("json://example.org/x", "ntfy://example.org/topic", "mailto://user:pass@example.org"):
        with pytest.raises(Misconfigured, match="channel desk: anybody between"):
            service_of("desk", url)
        service_of("desk", url, is_plain_allowed=True)
    for url in ("jsons://example.org/x", "ntfys://example.org/topic", "ntfy://topic", "mailtos://u:p@example.org",
                SLACK, "pagerduty://integration@token"):  # fmt: skip
        service_of("desk", url)


def test_no_part_of_an_address_is_in_a_reason() -> None:
    address = "jsons://us%40er:p%2Fss-word@host.example:8443/path-1/?+Header=value9"
    text = "could not reach host.example as us@er with p/ss-word at path-1: value9\x1b[0m"
    assert not [part for part in ("us@er", "p/ss-word", "host.example", "path-1", "value9", "\x1b")
                if part in without_secrets(text, address)]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_only_text_in_every_form(name: str) -> None:
    """By what is sent to services whose text has markup."""
    alert = {"event_id": "e", "risk": "red", "sequence": 1, "norad_id_1": 1, "norad_id_2": 2, "object_name_1": name,
             "object_name_2": name, "tca_time_ns": after(60), "miss_distance_km": 0.1, "collision_probability": 1e-3,
             "stated_probability": 1e-3, "stated_by": name}  # fmt: skip
    message = message_of("desk", [DueAlert(alert, "begun")], [], START_NS)
    assert message is not None
    assert "\n" not in message.title and message.body.count("\n") == 3
    assert all(letter.isprintable() or letter in "\n\u2060" for letter in message.title + message.body)


def test_html_and_chat_services_get_names_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    message = PeopleMessage("k", "red: <b>x</b>", "red: <img src=//evil> <!channel> & *x*")
    with mail_server() as server:
        assert sent(monkeypatch, f"{server.url}&format=html", message) is None
        body = server.messages[0].get_body(("html",))
        assert body is not None
        content = body.get_content()
        assert "<img" not in content and "&lt;img" in content
    slack = service_of("chat", SLACK)
    calls = list(slack._build_send_calls(body=message.body, title=message.title, body_format="text"))
    assert calls and "<!channel>" not in calls[0]["body"] and "&lt;!channel&gt;" in calls[0]["body"]


def test_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_CHANNEL", raising=False)
    assert send("desk", ENTRY, MESSAGE) == NotTaken("channel desk: the environment variable A_CHANNEL is not set")
    assert "A_CHANNEL" not in os.environ
