"""The report of a running collector (`report`), as its control plane answers it to other processes."""

import os
from http import HTTPStatus
from typing import Any, Final

import httpx

TOKEN_VARIABLE: Final = "SDA_COLLECT_TOKEN"  # noqa: S105 - the name of a variable
_TIMEOUT_S: Final = 5.0


class NoReport(Exception):
    """The collector does not answer or its answer is no report; the text has the reason."""


def fetch_report(control: str) -> dict[str, Any]:
    """The report of the collector at ``control`` (host:port). Raises NoReport."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"http://{control}/sources", headers=headers, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        report = dict(answer.json())
        if not {"sources", "problems"} <= report.keys():
            raise ValueError("another program may have its port")
        return report
    except httpx.HTTPStatusError as error:
        hint = f"; set {TOKEN_VARIABLE}" if error.response.status_code == HTTPStatus.UNAUTHORIZED else ""
        raise NoReport(f"the collector at {control} answered {error.response.status_code}{hint}") from None
    except (httpx.HTTPError, TypeError, ValueError) as error:
        raise NoReport(f"the collector at {control} does not answer: {error}") from None
