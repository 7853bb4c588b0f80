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
    """Return the report of the collector at ``control`` (host:port). Raises NoReport."""
    try:
        report = dict(_answer(control, "/sources").json())
        if not {"sources", "problems"} <= report.keys():
            raise ValueError("another program may have its port")
        return report
    except (TypeError, ValueError) as error:
        raise _silent(control, error) from None


def fetch_metrics(control: str) -> str:
    """Return what the collector at ``control`` (host:port) exports, in Prometheus' text format. Raises NoReport."""
    return _answer(control, "/metrics").text


def _answer(control: str, path: str) -> httpx.Response:
    token = os.environ.get(TOKEN_VARIABLE, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"http://{control}{path}", headers=headers, timeout=_TIMEOUT_S)
        return answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        hint = f"; set {TOKEN_VARIABLE}" if error.response.status_code == HTTPStatus.UNAUTHORIZED else ""
        raise NoReport(f"the collector at {control} answered {error.response.status_code}{hint}") from None
    except httpx.HTTPError as error:
        raise _silent(control, error) from None


def _silent(control: str, error: Exception) -> NoReport:
    return NoReport(f"the collector at {control} does not answer: {error}")
