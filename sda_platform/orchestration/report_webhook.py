"""The webhook that gets reports for people: failed runs, and vitals that turn red or recover."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

_ANSWER_WITHIN_S = 5.0
# Refused for its content: the same report would be refused for ever, and all later ones would wait behind it.
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)


@dataclass(frozen=True)
class ReportWebhook:
    """Where reports are posted; ``url`` empty: nowhere. It may hold a secret."""

    url: str

    def post(self, key: str, report: Mapping[str, Any]) -> str | None:
        """Post ``report`` under the idempotency ``key``; why it did not arrive, without secrets, or None.

        A report that is refused for its content, or as a repetition, counts as received. Raises nothing.
        """
        if not self.url:
            return None
        try:
            answer = httpx.post(self.url, json=dict(report), headers={"Idempotency-Key": key}, timeout=_ANSWER_WITHIN_S)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"the webhook of reports did not answer: {type(error).__name__}"
        if answer.is_success or answer.status_code in (HTTPStatus.CONFLICT, *_REFUSED):
            return None
        return f"the webhook of reports answered {answer.status_code}"


NOBODY = ReportWebhook("")
"""Where no webhook is configured: every report counts as received."""
