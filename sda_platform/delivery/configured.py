"""Make the subscriber of alerts from its one setting."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx

from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Subscriber, SubscriberMisconfigured
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.retention import RETENTION
from sda_platform.orchestration.webhooks import SigningKeys, require_tls
from sda_platform.settings import Settings


def subscriber_of(settings: Settings) -> Subscriber:
    """Return the subscriber of ``settings``. Raises as `chosen_subscriber`."""
    return chosen_subscriber(
        settings.subscriber,
        settings.home,
        keys=settings.access.subscriber_keys,
        is_plain_allowed=settings.access.plain_http,
        receipt_days=settings.retention.operations_days,
    )


def chosen_subscriber(
    setting: str,
    home: Path,
    *,
    keys: str = "",
    is_plain_allowed: bool = False,
    receipt_days: int = RETENTION.operations_days,
) -> Subscriber:
    """Return the subscriber that ``setting`` names: a path or sqlite:///…, postgresql://…, http(s)://…; opens nothing.

    ``home`` is where the default subscriber has its file; a database keeps receipts for ``receipt_days``. A webhook
    signs with ``keys``. Raises SubscriberMisconfigured for any other setting, unusable keys, and a webhook of plain
    HTTP on another machine, unless that is allowed.
    """
    try:
        if urlsplit(setting).scheme in ("http", "https"):
            require_tls(setting, "SDA_SUBSCRIBER", is_plain_allowed=is_plain_allowed)
            return WebhookSubscriber(setting, keys=SigningKeys("SDA_SUBSCRIBER_KEYS", keys))
        return _opened(setting, home.absolute(), receipt_days)
    except Misconfigured as error:
        raise SubscriberMisconfigured(str(error)) from None
    except (ValueError, httpx.InvalidURL):  # the reason may hold a part of the password
        raise SubscriberMisconfigured(
            "SDA_SUBSCRIBER is not a URL that can be read: are special characters of the password written as %XX?"
        ) from None


def _opened(setting: str, home: Path, receipt_days: int) -> Subscriber:
    scheme = urlsplit(setting).scheme
    match scheme:
        case "postgresql" | "postgres":
            return PostgresSubscriber(setting, receipt_days)
        case "sqlite" | "":
            path = Path(setting.removeprefix("sqlite://") or home / "subscriber.sqlite")
            return SqliteSubscriber(path, receipt_days)
    raise SubscriberMisconfigured(
        f"SDA_SUBSCRIBER: no subscriber is reached by {scheme}://; known are a path, sqlite:///path, "
        "postgresql://user:password@host/database, https://host/path"
    )


def require_idempotency(subscriber: Subscriber) -> None:
    """Refuse a subscriber without a declared idempotency mechanism for repeated deliveries.

    Raises SubscriberMisconfigured.
    """
    if not getattr(subscriber, "idempotency", ""):
        raise SubscriberMisconfigured(f"{type(subscriber).__name__} does not declare its idempotency")
