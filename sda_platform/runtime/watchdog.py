"""The watchdog of `sda up`: evaluates the vitals outside Dagster, notifies, and answers `/health`.

    python -m sda_platform.runtime.watchdog PORT

A daemon that stopped, a pool that is stuck or a full disk cannot be reported by what they stop. This process needs none
of them: it reads logs, directories and Dagster's records.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import dagster as dg

from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.evaluation import Reading, evaluate
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.observing import observe
from sda_platform.observability.vitals.process_facts import processes_of
from sda_platform.observability.vitals.watch import Watch
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.runtime import liveness, platform_home
from sda_platform.runtime.pages import PageAnswer, Pages
from sda_platform.settings import Settings

# A busy engine may leave one question unanswered.
_QUESTIONS = 2
_LATE_ROUNDS = 3


def current_readings(settings: Settings) -> tuple[Reading, ...]:
    """Every vital now; runs and the daemon's heartbeat are read from Dagster's records."""
    home = settings.home.absolute()
    if platform_home.running_platform(home) is None:
        return readings(settings, None)
    with dg.DagsterInstance.from_config(str(platform_home.dagster_home(home))) as instance:
        return readings(settings, instance)


def readings(settings: Settings, instance: dg.DagsterInstance | None) -> tuple[Reading, ...]:
    """Every vital now, as seen from beside the supervisor; what no running platform can answer is unknown."""
    home = settings.home.absolute()
    state = platform_home.running_platform(home)
    if state is None:
        return evaluate(observe(settings), settings.vitals)
    facts = observe(
        settings,
        instance,
        engine_answers=_engine_answers(state, settings.hung_after_s / liveness.MISSES),
        processes=lambda: list(processes_of(state)),
    )
    return evaluate(facts, settings.vitals)


def _engine_answers(state: Mapping[str, Any], deadline_s: float) -> bool | None:
    """Whether the engine that this platform started executes a statement; None where it started none."""
    if "engine" not in state.get("processes", {}):
        return None
    ask = liveness.engine_answers(state["addresses"]["engine"])
    return any(ask(deadline_s) for _ in range(_QUESTIONS))


def health(found: VitalHistory, now_s: float, interval_s: float) -> PageAnswer:
    """What `/health` answers: 200 while no vital is red; 503 with the reasons, also when the evaluation is late."""
    age_s = now_s - found.at_s
    problems = [str(each.reading) for each in found.red]
    if age_s > _LATE_ROUNDS * interval_s:
        problems.append(f"the vitals were evaluated {age_s:,.0f} s ago")
    content = {
        "healthy": not problems,
        "evaluated": iso(round(found.at_s * NANOSECONDS_PER_SECOND)),
        "problems": problems,
        "vitals": {
            name: {
                "state": each.reading.state,
                "side": each.reading.side,
                "text": each.reading.text,
                "since": iso(round(each.since_s * NANOSECONDS_PER_SECOND)),
            }
            for name, each in found.vitals.items()
        },
    }
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return PageAnswer(json.dumps(content, indent=1).encode(), "application/json", status)


def watch(settings: Settings, stop: threading.Event) -> None:
    """Evaluate until ``stop``; a round that fails is logged, and the next one comes."""
    home = settings.home.absolute()
    watcher = Watch(home, ReportWebhook(settings.failure_webhook), _print)
    while not stop.is_set():
        began_s = time.monotonic()
        try:
            watcher.round(lambda: current_readings(settings), time.time)
        except Exception as error:  # the watch must go on whatever one round meets
            _print(f"the vitals could not be evaluated: {type(error).__name__}: {error}")
        stop.wait(max(0.0, settings.vitals.interval_s - (time.monotonic() - began_s)))


def main(port: int) -> int:
    """Serve at ``port`` and watch until this process is ended."""
    settings, stop = Settings(), threading.Event()
    home = settings.home.absolute()
    pages = {"/health": lambda: health(history.load(home), time.time(), settings.vitals.interval_s)}
    with Pages(port, pages):
        _print(f"watching {home} every {settings.vitals.interval_s:g} s (process {os.getpid()})")
        watch(settings, stop)
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{iso(time.time_ns())} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
