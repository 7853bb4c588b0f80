"""What the webhooks that the platform calls have in common: TLS beyond this machine, and signed requests.

A signature is that of Standard Webhooks (standardwebhooks.com): HMAC-SHA256 over id, time and body. Several keys sign
during a rotation, so a receiver may change its key at any moment of it. docs/reference/webhook.md is the contract.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from sda_platform.edge.address import Address
from sda_platform.lake.errors import Misconfigured
from sda_platform.private_home import ExposedFile, private_content

ID_HEADER: Final = "Webhook-Id"
TIME_HEADER: Final = "Webhook-Timestamp"
SIGNATURE_HEADER: Final = "Webhook-Signature"
KEY_HEADER: Final = "Webhook-Key-Id"
_PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24
_KEY: Final = re.compile(rf"(?P<id>[A-Za-z0-9_.-]{{1,40}}):{_PREFIX}(?P<secret>[A-Za-z0-9+/]+=*)")
_FORM: Final = (
    f"write id:{_PREFIX}<base64 of {_LEAST_BYTES} bytes or more>, separated by spaces, or a file's absolute path"
)


class SigningKey(NamedTuple):
    """A shared secret and the name by which a receiver finds it."""

    id: str
    secret: bytes


class SigningKeys:
    """The keys of the setting ``variable``, whose ``text`` holds them or names a file; empty: nothing is signed.

    A file is read for each request, so that a rotation needs no restart. Raises Misconfigured as `__iter__` does.
    """

    def __init__(self, variable: str = "", text: str = "") -> None:
        self._variable, self._text = variable, text.strip()
        list(self)

    def __bool__(self) -> bool:
        """Return whether there are keys."""
        return bool(self._text)

    def __iter__(self) -> Iterator[SigningKey]:
        """The keys as they are now. Raises Misconfigured, without a secret, for keys or a file that cannot be used."""
        if not self._text:
            return
        text = secret_content(Path(self._text), self._variable) if self._text.startswith("/") else self._text
        for each in text.split():
            found = _KEY.fullmatch(each)
            try:
                secret = base64.b64decode(found["secret"], validate=True) if found else b""
            except binascii.Error:
                secret = b""
            if found is None or len(secret) < _LEAST_BYTES:
                raise Misconfigured(f"{self._variable} has no usable key: {_FORM}")
            yield SigningKey(found["id"], secret)

    def headers(self, message_id: str, body: bytes, now_s: float) -> dict[str, str]:
        """Return what a request with ``body`` adds; ``message_id`` is the same for each repetition, ``now_s`` is Unix
        time.

        Empty without keys. Raises Misconfigured.
        """
        keys, time_s = list(self), str(int(now_s))
        if not keys:
            return {}
        signed = b".".join([message_id.encode(), time_s.encode(), body])
        signatures = [base64.b64encode(hmac.digest(key.secret, signed, "sha256")).decode() for key in keys]
        return {
            ID_HEADER: message_id,
            TIME_HEADER: time_s,
            SIGNATURE_HEADER: " ".join(f"v1,{each}" for each in signatures),
            KEY_HEADER: " ".join(key.id for key in keys),
        }


UNSIGNED: Final = SigningKeys()


def require_tls(
    url: str, variable: str, *, is_plain_allowed: bool = False, schemes: tuple[str, str] = ("http", "https")
) -> None:
    """Raise Misconfigured for what is no URL, and for another machine without TLS, unless that is allowed.

    ``schemes``: that without TLS, and that with it.
    """
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:  # the reason may hold a part of the password
        raise Misconfigured(
            f"{variable} is not a URL that can be read: are special characters of the password written as %XX?"
        ) from None
    plain, secure = schemes
    is_plain = parts.scheme == plain and not Address(parts.host, 0).is_loopback
    if is_plain and not is_plain_allowed:
        raise Misconfigured(
            f"{variable}: anybody between here and {parts.host} could read and alter what is sent: write {secure}://, "
            "or set SDA_WEBHOOK_PLAIN_HTTP=true where that network is trusted"
        )


def secret_content(path: Path, named_by: str) -> str:
    """Return the text of a file that holds a secret and belongs to its user alone.

    Raises Misconfigured, which begins with ``named_by``, where others may use it or it cannot be read.
    """
    try:
        return private_content(path).decode("ascii")
    except ExposedFile as exposed:
        raise Misconfigured(f"{named_by}: {exposed}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{named_by}: {path} cannot be read: {error}") from None
