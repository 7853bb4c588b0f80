"""Make the subscriber of alerts from its one setting."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx

from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Subscriber, SubscriberMisconfigured
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber


def chosen_subscriber(setting: str, home: Path) -> Subscriber:
    """The subscriber that ``setting`` names: a path or sqlite:///…, postgresql://…, http(s)://…; opens nothing.

    ``home`` is where the default subscriber has its file. Raises SubscriberMisconfigured for any other setting.
    """
    try:
        return _opened(setting, home.absolute())
    except (ValueError, httpx.InvalidURL):  # the reason may hold a part of the password
        raise SubscriberMisconfigured(
            "SDA_SUBSCRIBER is not a URL that can be read: are special characters of the password written as %XX?"
        ) from None


def _opened(setting: str, home: Path) -> Subscriber:
    scheme = urlsplit(setting).scheme
    match scheme:
        case "postgresql" | "postgres":
            return PostgresSubscriber(setting)
        case "http" | "https":
            return WebhookSubscriber(setting)
        case "sqlite" | "":
            return SqliteSubscriber(Path(setting.removeprefix("sqlite://") or home / "subscriber.sqlite"))
    raise SubscriberMisconfigured(
        f"SDA_SUBSCRIBER: no subscriber is reached by {scheme}://; known are a path, sqlite:///path, "
        "postgresql://user:password@host/database, https://host/path"
    )


def require_idempotency(subscriber: Subscriber) -> None:
    """Refuse a subscriber without a declared idempotency mechanism for repeated deliveries (DP5-F10).

    Raises SubscriberMisconfigured.
    """
    if not getattr(subscriber, "idempotency", ""):
        raise SubscriberMisconfigured(f"{type(subscriber).__name__} does not declare its idempotency")
