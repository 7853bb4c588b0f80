"""The watchdog of `sda up`: evaluates the vitals outside Dagster, notifies people, answers `/health` and `/metrics`.

    python -m sda_platform.runtime.watchdog HOST:PORT

A daemon that stopped, a pool that is stuck or a full disk cannot be reported by what they stop. This process needs none
of them: it reads logs, directories and Dagster's records.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

import dagster as dg
from deltalake.exceptions import DeltaError
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sda_platform.clock import MissionClock, iso
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.zone import LandingZone
from sda_platform.metric_history.tables import METRICS_FEED
from sda_platform.notification.notifier import Notifier
from sda_platform.observability.metrics.exporter import PlatformMetrics
from sda_platform.observability.metrics.recording import MetricsRecorder, collector_metrics
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import DaemonFacts, Facts
from sda_platform.observability.vitals.faults import Reading
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.observing import observe
from sda_platform.observability.vitals.process_facts import processes_of
from sda_platform.observability.vitals.watch import Receivers, Watch
from sda_platform.published import COLLECTOR, published
from sda_platform.runtime import liveness, platform_home
from sda_platform.runtime.pages import Page, PageAnswer, Pages
from sda_platform.settings import Settings
from sda_platform.units import SECOND_NS

# A busy engine may leave one question unanswered.
_QUESTIONS = 2
_LATE_ROUNDS = 3


def current_readings(settings: Settings) -> tuple[Reading, ...]:
    """Evaluate every vital now."""
    return evaluate(current_facts(settings), settings.vitals)


def current_facts(settings: Settings) -> Facts:
    """Return the facts now, from outside the supervisor; facts that only a running platform has are unknown."""
    home = settings.home.absolute()
    state = platform_home.running_platform(home)
    if state is None:
        return observe(settings)
    look = partial(
        observe,
        settings,
        engine_answers=_engine_answers(state, settings.hung_after_s / liveness.MISSES),
        processes=lambda: list(processes_of(state)),
    )
    try:
        with dg.DagsterInstance.from_config(str(platform_home.dagster_home(home))) as instance:
            return look(instance)
    except Exception as error:  # of Dagster's storage, whichever it is; other facts must not be lost with it
        return replace(look(), daemon=DaemonFacts(None, unreadable=f"{type(error).__name__}: {error}"))


def _engine_answers(state: Mapping[str, Any], deadline_s: float) -> bool | None:
    """Return whether the engine that this platform started executes a statement; None where it started none."""
    if "engine" not in state.get("processes", {}):
        return None
    ask = liveness.engine_answers(state["addresses"]["engine"])
    return any(ask(deadline_s) for _ in range(_QUESTIONS))


def health(found: VitalHistory, now_s: float, interval_s: float) -> PageAnswer:
    """Answer `/health`: 200 while no vital is red; 503 with the reasons, also when the evaluation is late."""
    age_s = now_s - found.at_s
    problems = [str(each.reading) for each in found.red]
    if not found.vitals:
        problems.append("the vitals have not been evaluated yet")
    elif age_s > _LATE_ROUNDS * interval_s:
        problems.append(f"the vitals were evaluated {age_s:,.0f} s ago")
    content = {
        "healthy": not problems,
        "evaluated": iso(round(found.at_s * SECOND_NS)) if found.vitals else None,
        "problems": problems,
        "vitals": {
            name: {**each.reading.to_dict(), "since": iso(round(each.since_s * SECOND_NS))}
            for name, each in found.vitals.items()
        },
    }
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return PageAnswer(json.dumps(content, indent=1).encode(), "application/json", status)


class Watchdog:
    """Evaluates the vitals and keeps the metrics, round after round.

    Its pages show the last round from memory: a full disk hides no red vital, and a request reads nothing.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._home = settings, settings.home.absolute()
        self._watch = Watch(self._home, Receivers.of(settings), _print, is_watchdog=True)
        self._metrics: PlatformMetrics | None = None
        self._recorder: MetricsRecorder | None = None
        self._text = b""
        self._found = history.load(self._home)

    def pages(self) -> Mapping[str, Page]:
        """Return the pages that the watchdog serves, by path."""
        interval_s = self._settings.vitals.interval_s
        return {
            "/health": lambda: health(self._found, time.time(), interval_s),
            "/metrics": lambda: PageAnswer(self._text, CONTENT_TYPE_LATEST),
        }

    def keep_watching(self, stop: threading.Event) -> None:
        """Do rounds until ``stop``; one that fails is logged, and the next one comes."""
        while not stop.is_set():
            began_s = time.monotonic()
            try:
                self.round()
            except Exception as error:  # the watch must go on whatever one round meets
                _print(f"the vitals could not be evaluated: {type(error).__name__}: {error}")
            stop.wait(max(0.0, self._settings.vitals.interval_s - (time.monotonic() - began_s)))

    def round(self) -> None:
        """Evaluate once and notify; then bring the metrics up to date, whose failure hides no vital."""
        facts = current_facts(self._settings)
        self._show(self._watch.round(lambda: evaluate(facts, self._settings.vitals), time.time, self._show))
        try:
            self._refresh_metrics(facts, self._found)
        except (LakeError, DeltaError, OSError) as error:
            _print(f"the metrics could not be read: {error}")
            if self._metrics:
                self._metrics.count_failed_round()
        if self._metrics:
            self._text = self._metrics.metrics.text()
            self._record(self._metrics)

    def _show(self, found: VitalHistory) -> None:
        self._found = found

    def _record(self, metrics: PlatformMetrics) -> None:
        """Seal a sample of all metrics where one is due; a failure hides nothing."""
        if self._recorder is None:
            self._recorder = MetricsRecorder(
                LandingZone(self._settings.landing_uri, METRICS_FEED),
                MissionClock.load(self._home),
                {
                    "watchdog": lambda: self._text.decode(),
                    COLLECTOR: lambda: collector_metrics(published(self._home, COLLECTOR)),
                },
                self._settings.vitals.metrics_interval_s,
            )
        try:
            self._recorder.round(time.monotonic())
        except (LakeError, OSError) as error:
            _print(f"the metrics could not be recorded: {error}")
            metrics.count_failed_round()

    def _refresh_metrics(self, facts: Facts, found: VitalHistory) -> None:
        if self._metrics is None:
            lake = Lake(self._settings.lake_uri, MissionClock.load(self._home), without_session)
            self._metrics = PlatformMetrics(lake, window_s=self._settings.fusion.window_s)
        self._metrics.refresh(facts, found)


def main(address: str) -> int:
    """Serve at ``address`` (host:port) and watch until this process is ended."""
    host, _, port = address.rpartition(":")
    settings = Settings()
    watchdog = Watchdog(settings)
    pages = Pages(host, int(port), watchdog.pages(), settings.own_hosts)
    stop = threading.Event()
    lake = Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)
    notifier = Notifier(settings, lake, _print)
    threading.Thread(target=notifier.keep_sending, args=(stop,), daemon=True).start()
    with pages, suppress(KeyboardInterrupt):  # the supervisor ends it by SIGINT
        _print(f"watching {settings.home.absolute()} every {settings.vitals.interval_s:g} s (process {os.getpid()})")
        watchdog.keep_watching(stop)
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{iso(time.time_ns())} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
