"""One setting chooses the subscriber, and nothing shows its secrets."""

import ssl
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap

from sda_platform.definitions import build_defs
from sda_platform.delivery.configured import chosen_subscriber
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import SubscriberMisconfigured, SubscriberUnavailable
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform.settings import Settings

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("setting", "kind", "name"),
    [
        ("", SqliteSubscriber, "sqlite:subscriber.sqlite"),
        ("/data/told.sqlite", SqliteSubscriber, "sqlite:told.sqlite"),
        ("sqlite:///data/told.sqlite", SqliteSubscriber, "sqlite:told.sqlite"),
        (f"postgresql://me:{SECRET}@db:5433/alerts", PostgresSubscriber, "postgresql://db:5433/alerts"),
        (f"https://me:{SECRET}@hook.example/in?key={SECRET}", WebhookSubscriber, "https://hook.example/in"),
    ],
)
def test_the_setting_says_which_it_is_and_its_name_keeps_the_secret(
    tmp_path: Path, setting: str, kind: type, name: str
) -> None:
    subscriber = chosen_subscriber(setting, tmp_path)
    assert type(subscriber) is kind
    assert subscriber.name == name
    assert list(tmp_path.iterdir()) == [], "choosing opens nothing"


def test_a_file_is_the_one_that_the_setting_names(tmp_path: Path) -> None:
    paths = [chosen_subscriber(s, tmp_path).path for s in ("", "sqlite:///data/a.sqlite")]  # type: ignore[attr-defined]
    assert paths == [tmp_path / "subscriber.sqlite", Path("/data/a.sqlite")]


def test_an_unknown_kind_is_refused_without_telling_the_password(tmp_path: Path) -> None:
    with pytest.raises(SubscriberMisconfigured, match="no subscriber is reached by amqp://") as refused:
        chosen_subscriber(f"amqp://me:{SECRET}@host", tmp_path)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "setting",
    [f"postgresql://me:{SECRET}/x@host/db", f"postgresql://me:5/{SECRET}@host/db", f"http://me:{SECRET}/x@host/db"],
)
def test_a_password_that_breaks_the_url_is_not_reported_either(tmp_path: Path, setting: str) -> None:
    with pytest.raises(SubscriberMisconfigured, match="is not a URL that can be read") as refused:
        chosen_subscriber(setting, tmp_path)
    assert SECRET not in repr(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(("scheme", "query"), [("postgresql", "sslmode=disable"), ("http", f"key={SECRET}")])
def test_no_failure_shows_the_password(tmp_path: Path, scheme: str, query: str) -> None:
    subscriber = chosen_subscriber(f"{scheme}://me:{SECRET}@127.0.0.1:1/alerts?{query}", tmp_path)
    with pytest.raises(SubscriberUnavailable) as away:
        subscriber.mark()
    told: BaseException | None = away.value
    while told is not None:
        assert SECRET not in repr(told)
        told = told.__cause__ or told.__context__


def test_the_settings_and_the_definitions_do_not_show_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, subscriber=f"postgresql://me:{SECRET}@db/alerts")
    assert SECRET not in repr(settings)
    told_to_the_ui = RepositorySnap.from_def(build_defs(settings=settings).get_repository_def())
    assert SECRET not in dg.serialize_value(told_to_the_ui)


def test_a_sink_that_does_not_say_what_makes_it_idempotent_is_refused__DP5_F10(tmp_path: Path) -> None:
    undeclared: Any = type("Mailer", (), {"name": "mail"})()
    with pytest.raises(SubscriberMisconfigured, match="Mailer does not declare its idempotency"):
        build_defs({"subscriber": undeclared}, Settings(home=tmp_path))


@pytest.mark.parametrize("mode", ["required", "Require", "prefer", "allow", "", "verify_full"])
def test_a_mode_of_tls_that_is_none_is_refused_and_not_taken_for_plain_text__S8(tmp_path: Path, mode: str) -> None:
    with pytest.raises(SubscriberMisconfigured, match="must be one of disable, require, verify-ca, verify-full"):
        chosen_subscriber(f"postgresql://sda:secret@db.example.org/alerts?sslmode={mode}", tmp_path)


@pytest.mark.parametrize(("query", "reason"), [("ssl=true", "no parameter is named 'ssl'"), ("sslrootcert=/no", "/no")])
def test_a_parameter_that_cannot_be_used_is_refused__S8(tmp_path: Path, query: str, reason: str) -> None:
    with pytest.raises(SubscriberMisconfigured, match=reason) as refused:
        chosen_subscriber(f"postgresql://sda:secret@db.example.org/alerts?{query}", tmp_path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "is_verified"),
    [("127.0.0.1", False), ("localhost", False), ("db", True), ("10.0.0.1", True), ("db.example.org", True)],
)
def test_beyond_this_machine_the_server_is_verified_unless_the_address_says_otherwise__S8(
    tmp_path: Path, host: str, is_verified: bool
) -> None:
    for query, verified in (("", is_verified), ("?sslmode=disable", False), ("?sslmode=verify-full", True)):
        subscriber = chosen_subscriber(f"postgresql://sda:secret@{host}/alerts{query}", tmp_path)
        assert isinstance(subscriber, PostgresSubscriber)
        context = subscriber._options["ssl_context"]
        assert (context is not None and context.check_hostname and context.verify_mode == ssl.CERT_REQUIRED) is verified
