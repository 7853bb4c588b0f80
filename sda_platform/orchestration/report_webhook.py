"""The webhook that gets reports for people: failed runs, and vitals that turn red or recover."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import UNSIGNED, SigningKeys, require_tls
from sda_platform.settings import Settings

_ANSWER_WITHIN_S = 5.0
# Refused for its content: the same report would be refused for ever, and all later ones would wait behind it.
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)


@dataclass(frozen=True)
class ReportWebhook:
    """Where reports are posted; ``url`` empty: nowhere. It may hold a secret. ``keys`` sign the requests."""

    url: str
    keys: SigningKeys = UNSIGNED

    @classmethod
    def of(cls, settings: Settings, url: str, variable: str = "SDA_FAILURE_WEBHOOK") -> "ReportWebhook":
        """Return the webhook at ``url``, which ``variable`` sets, with the keys of ``settings``.

        Raises Misconfigured for keys that cannot be used, and for plain HTTP to another machine, unless it is allowed.
        """
        require_tls(url, variable, is_plain_allowed=settings.access.plain_http)
        return cls(url, SigningKeys("SDA_NOTICE_KEYS", settings.access.notice_keys))

    def post(self, key: str, report: Mapping[str, Any]) -> str | None:
        """Post ``report`` under the idempotency ``key``; why it did not arrive, without secrets, or None.

        A report that is refused for its content, or as a repetition, counts as received. Raises nothing.
        """
        if not self.url:
            return None
        body = json.dumps(dict(report), separators=(",", ":")).encode()
        try:
            headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
            headers |= self.keys.headers(key, body, time.time())
            answer = httpx.post(self.url, content=body, headers=headers, timeout=_ANSWER_WITHIN_S)
        except Misconfigured as error:
            return str(error)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"the webhook of reports did not answer: {type(error).__name__}"
        if answer.is_success or answer.status_code in (HTTPStatus.CONFLICT, *_REFUSED):
            return None
        return f"the webhook of reports answered {answer.status_code}"


NOBODY = ReportWebhook("")
"""Where no webhook is configured: every report counts as received."""
