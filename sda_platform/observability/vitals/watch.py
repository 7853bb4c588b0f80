"""One round of the watch over the vitals: observe, judge, remember, notify."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.evaluation import Reading
from sda_platform.observability.vitals.history import Notice, VitalHistory
from sda_platform.orchestration.report_webhook import ReportWebhook


class Watch:
    """Keeps the history of the vitals of ``home`` and sends notices: to ``log`` once, to ``webhook`` until received.

    While the disk takes no history, it is kept in memory, so that a full disk is reported as well.
    """

    def __init__(self, home: Path, webhook: ReportWebhook, log: Callable[[str], object]) -> None:
        self._home, self._webhook, self._log = home, webhook, log
        self._unstored: VitalHistory | None = None

    def round(self, read: Callable[[], Sequence[Reading]], now: Callable[[], float]) -> VitalHistory:
        """Take ``read()`` into the history at ``now()`` (Unix seconds), then send what waits; the history after that.

        Processes that watch the same home take turns.
        """
        readings = read()
        with history.locked(self._home):
            before = self._unstored or history.load(self._home)
            after = before.after(readings, now())
            self._store(after)
            known = {notice.id for notice in before.pending}
            for notice in after.pending:
                if notice.id not in known:
                    self._log(str(notice))
            return self._send(after)

    def _send(self, waiting: VitalHistory) -> VitalHistory:
        for notice in waiting.pending:
            problem = self._webhook.post(notice.id, report_of(notice))
            if problem:
                logging.getLogger(__name__).warning("%s; the notice %s is sent again", problem, notice.id)
                return waiting
            waiting = waiting.without(notice)
            self._store(waiting)
        return waiting

    def _store(self, changed: VitalHistory) -> None:
        try:
            history.store(self._home, changed)
            self._unstored = None
        except OSError as error:
            self._unstored = changed
            logging.getLogger(__name__).warning("the history of the vitals cannot be stored: %s", error)


def report_of(notice: Notice) -> dict[str, object]:
    """The JSON that the webhook gets."""
    return {"kind": "vital", **asdict(notice), "message": str(notice)}
