"""Sending through a channel: a service of the library `apprise`, chosen by the scheme of the channel's address.

An address holds secrets, so neither it nor a part of it is ever in a text that leaves this module.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from sda_platform.edge.address import Address
from sda_platform.foreign_text import printable
from sda_platform.lake.errors import Misconfigured
from sda_platform.notification.message import PeopleMessage
from sda_platform.notification.notify_file import ChannelEntry
from sda_platform.orchestration.webhooks import secret_content

_KEY_HEADER: Final = "+Idempotency-Key"
_KEYED: Final = {
    "json": _KEY_HEADER, "jsons": _KEY_HEADER, "mailto": _KEY_HEADER, "mailtos": _KEY_HEADER, "pagerduty": "dedup",
}  # fmt: skip
"""By scheme, the option that gives a message its key. The text of every message has it, too."""
_WITH_FACTS: Final = ("json", "jsons")
"""The schemes whose messages have the facts of the alerts as JSON, beside the text."""
_KINDS: Final = {"red": "failure", "yellow": "warning"}
_LEAST_SECRET: Final = 4
_MOST_REASON: Final = 300
_ANSWER: Final = re.compile(r"\berror=(\d{3})\b|\((5\d\d), b['\"]")
"""The status of an HTTP answer, or the permanent failure of a mail server, in a line of the library's log."""
_REFUSED: Final = {"400", "406", "413", "414", "415", "422", "550", "551", "552", "553", "554", "555"}
"""Answers about the message. What is about the address, such as 401, or passes by itself, such as 429, is repeated."""
_SERVICES: Final = "https://appriseit.com/services/"


def address_of(name: str, entry: ChannelEntry) -> str:
    """Return the address of a channel, read anew each time. Raises Misconfigured, without a secret."""
    if entry.url_file:
        text = secret_content(Path(entry.url_file), f"channel {name}").strip()
    else:
        text = os.environ.get(entry.url_variable, "").strip()
        if not text:
            raise Misconfigured(f"channel {name}: the environment variable {entry.url_variable} is not set")
    return text


def service_of(name: str, address: str, *, is_plain_allowed: bool = False, key: str = "") -> Any:
    """Return the service of an address, for a message of this ``key``. Raises Misconfigured, without a secret.

    One without TLS on another machine is refused, unless that is allowed.
    """
    from apprise import Apprise, AppriseAsset

    scheme = address.partition("://")[0].lower()
    asset = AppriseAsset(app_id="SDA", app_desc="Space domain awareness", app_url="", http_redirects=False)
    if key and (option := _KEYED.get(scheme)):
        address += f"{'&' if '?' in address else '?'}{option}={quote(key, safe='')}"
    with _log_of_library():  # it may hold a part of the address
        service = Apprise.instantiate(address, asset=asset)
    if service is None:
        raise Misconfigured(f"channel {name}: its address is none that can be used; {_SERVICES} lists their forms")
    is_plain = bool(service.protocol) and not service.secure and scheme not in _secure_schemes(service)
    if is_plain and service.host and not Address(service.host, 0).is_loopback and not is_plain_allowed:
        raise Misconfigured(
            f"channel {name}: anybody between here and the service could read and alter what is sent: choose the "
            "scheme with TLS, or set SDA_WEBHOOK_PLAIN_HTTP=true where that network is trusted"
        )
    return service


class NotTaken(NamedTuple):
    """Why a message was not taken, without secrets. ``is_refused``: the service refuses this message for good."""

    reason: str
    is_refused: bool = False


def send(name: str, entry: ChannelEntry, message: PeopleMessage, *, is_plain_allowed: bool = False) -> NotTaken | None:
    """Send a message; return why it was not taken, or None. Raises nothing."""
    address = ""
    try:
        address = address_of(name, entry)
        service = service_of(name, address, is_plain_allowed=is_plain_allowed, key=message.key)
        if address.partition("://")[0].lower() in _WITH_FACTS:
            service.payload_extras |= {"key": message.key, "level": message.level, "alerts": [*message.alerts]}
        with _log_of_library() as log:
            is_sent = service.notify(
                title=message.title,
                body=f"{message.body}\nMessage {message.key}",
                notify_type=_KINDS.get(message.level, "info"),
                body_format="text",
            )
    except Misconfigured as error:
        return NotTaken(str(error))
    except Exception as error:  # of one of many services: it must not end the channel's thread
        return NotTaken(f"the message could not be sent: {type(error).__name__}")
    if is_sent:
        return None
    warned = dict.fromkeys(record.getMessage() for record in log if record.levelno >= logging.WARNING)
    answers = ["".join(found) for record in log for found in _ANSWER.findall(record.getMessage())]
    reason = without_secrets("; ".join(warned) or "the service did not take the message", address)
    is_refused = bool(answers) and _REFUSED.issuperset(answers)
    codes = "" if not is_refused or all(code in reason for code in answers) else f" ({', '.join(answers)})"
    return NotTaken(f"{reason}{codes}", is_refused)


def without_secrets(text: str, address: str) -> str:
    """Return ``text`` in one line without any part of ``address`` but its scheme."""
    parts = re.split(r"[:/?#\[\]@&=+,;\s]+", address.partition("://")[2])
    for part in sorted({*parts, *map(unquote, parts)}, key=len, reverse=True):
        if len(part) >= _LEAST_SECRET:
            text = text.replace(part, "…")
    return " ".join(printable(text).split())[:_MOST_REASON]


def _secure_schemes(service: Any) -> tuple[str, ...]:
    found = service.secure_protocol or ()
    return (found,) if isinstance(found, str) else tuple(found)


@contextmanager
def _log_of_library() -> Iterator[list[logging.LogRecord]]:
    """Collect what the library logs in this thread within the block. Its log goes nowhere else."""
    logger, found, thread = logging.getLogger("apprise"), list[logging.LogRecord](), get_ident()

    class _Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                found.append(record)

    collector = _Collector()
    logger.propagate = False
    logger.setLevel(logging.DEBUG)  # the answers of a mail server are below warnings
    logger.addHandler(collector)
    try:
        yield found
    finally:
        logger.removeHandler(collector)
