"""One round of the watch over the vitals: observe, judge, remember, notify."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.observability.vitals import history, past_faults
from sda_platform.observability.vitals.evaluation import advice
from sda_platform.observability.vitals.faults import Reading
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.notices import REPEAT_S, Notice
from sda_platform.orchestration.report_webhook import NOBODY, ReportWebhook
from sda_platform.settings import Settings
from sda_platform.units import SECOND_NS


@dataclass(frozen=True)
class Receivers:
    """Who gets notices: ``first`` all of them; ``second`` those of faults that last, and that these are over."""

    first: ReportWebhook
    second: ReportWebhook = NOBODY
    repeat_s: float = REPEAT_S

    @classmethod
    def of(cls, settings: Settings) -> "Receivers":
        """Make the receivers of notices from the settings."""
        second = ReportWebhook.of(settings, settings.escalation_webhook, "SDA_ESCALATION_WEBHOOK")
        return cls(ReportWebhook.of(settings, settings.failure_webhook), second, settings.vitals.notice_repeat_s)


class Watch:
    """Keeps the history of the vitals of ``home`` and sends notices: to ``log`` once, to ``receivers`` until received.

    While the disk takes no history, it is kept in memory, so that a full disk is reported as well. ``is_watchdog``: the
    process exists for this, and its silence is a fault.
    """

    def __init__(
        self, home: Path, receivers: Receivers, log: Callable[[str], object], *, is_watchdog: bool = False
    ) -> None:
        self._home, self._receivers, self._log, self._is_watchdog = home, receivers, log, is_watchdog
        self._unstored: VitalHistory | None = None

    def round(
        self,
        read: Callable[[], Sequence[Reading]],
        now: Callable[[], float],
        show: Callable[[VitalHistory], object] = lambda _: None,
    ) -> VitalHistory:
        """Take ``read()`` into the history at ``now()`` (Unix seconds), then send what waits; the history after that.

        ``show`` gets the history before a notice is sent: a receiver may be slow, and who gets a notice looks at pages.
        Processes that watch the same home take turns.
        """
        readings = read()
        with history.locked(self._home):
            before = self._unstored or history.load(self._home)
            after = before.after(readings, now(), self._receivers.repeat_s)
            if self._is_watchdog:
                after = replace(after, watched_s=after.at_s)
            self._store(after)
            show(after)
            known = {notice.id for notice in before.pending}
            new = [notice for notice in after.pending if notice.id not in known and not notice.escalates]
            for notice in new:
                self._log(str(notice))
            self._keep(new, after.at_s)
            return self._send(after)

    def _send(self, waiting: VitalHistory) -> VitalHistory:
        """Return what a receiver does not take waits, and holds back only what is for the same receiver."""
        away: set[bool] = set()
        for notice in waiting.pending:
            if notice.escalates in away:
                continue
            receiver = self._receivers.second if notice.escalates else self._receivers.first
            problem = receiver.post(notice.id, report_of(notice))
            if problem:
                logging.getLogger(__name__).warning("%s; the notice %s is sent again", problem, notice.id)
                away.add(notice.escalates)
                continue
            waiting = waiting.without(notice)
            self._store(waiting)
        return waiting

    def _keep(self, notices: Sequence[Notice], at_s: float) -> None:
        try:
            past_faults.keep(self._home, notices, MissionClock.load(self._home).now_ns(round(at_s * SECOND_NS)))
        except OSError as error:
            logging.getLogger(__name__).warning("the faults cannot be recorded: %s", error)

    def _store(self, changed: VitalHistory) -> None:
        try:
            history.store(self._home, changed)
            self._unstored = None
        except OSError as error:
            self._unstored = changed
            logging.getLogger(__name__).warning("the history of the vitals cannot be stored: %s", error)


def report_of(notice: Notice) -> dict[str, object]:
    """Return the JSON that the webhook gets."""
    runbook = {"remedy": advice(notice.vital), "runbook": notice.runbook}
    return {"kind": "vital", **asdict(notice), **runbook, "message": str(notice)}
