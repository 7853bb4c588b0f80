"""The vitals in Dagster: an asset with a check for each, a sensor that evaluates them, a job for a person.

A sensor, and not a schedule with runs: 1,440 runs a day would bury the runs that matter, and each takes a worker.
Where `sda up` runs its watchdog, the sensor shows what that found; elsewhere it evaluates and notifies by itself.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from sda_platform.clock import iso
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.evaluation import VITALS, advice, evaluate
from sda_platform.observability.vitals.faults import RUNBOOK, Reading, VitalState
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.notices import Lasting
from sda_platform.observability.vitals.observing import observe
from sda_platform.observability.vitals.watch import Receivers, Watch
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.settings import Settings
from sda_platform.units import SECOND_NS

GROUP = "observability"
KEY = dg.AssetKey(["platform", "vitals"])
_AGAIN_S = 600.0
"""What did not change is shown again after this time: a check in the UI that is older is not evaluated any more."""
_MOST_FAULTS = 50
_WATCHDOG_STARTS_S = 60.0

ASSET = dg.AssetSpec(
    KEY,
    group_name=GROUP,
    kinds={"python"},
    description="Conditions that must be reported, whether data arrives or not: each check names the side at fault. "
    "Evaluated three times a minute without Spark. A check is recorded when its faults change, and every ten minutes: "
    "an older one means that neither the watchdog nor the sensor `vitals` runs. Notices go to SDA_FAILURE_WEBHOOK.",
)
_SPECS = [dg.AssetCheckSpec(vital.name, asset=KEY, description=vital.meaning) for vital in VITALS]


def vitals_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Return the checks of the vitals, as a person runs them; they send no notice."""

    @dg.multi_asset_check(name="vitals_checks", specs=_SPECS)
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        for reading in evaluate(observe(settings, context.instance), settings.vitals):
            yield dg.AssetCheckResult(
                asset_key=KEY,
                check_name=reading.vital,
                passed=reading.state is not VitalState.RED,
                description=outcome_text(reading.text),
                metadata=_facts(reading),
            )

    return checks


VITALS_JOB = dg.define_asset_job(
    "vitals",
    selection=dg.AssetSelection.checks_for_assets(KEY),
    executor_def=dg.in_process_executor,
    description="Evaluates every vital now. The sensor of the same name does so by itself.",
)


def vitals_sensor(settings: Settings) -> dg.SensorDefinition:
    """Return the sensor that shows the vitals in the UI, and evaluates them where no watchdog does."""
    # One for all ticks: it keeps what the disk does not take.
    watch = Watch(settings.home, Receivers.of(settings), logging.getLogger(__name__).warning)

    @dg.sensor(
        name="vitals",
        minimum_interval_seconds=round(settings.vitals.interval_s),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Shows the state of each vital; evaluates them and notifies where no watchdog runs.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        now_s, shown = time.time(), _shown(context.cursor)
        found, silent_since_s = current_history(settings, watch, context.instance, now_s, shown.get("silent_since_s"))
        is_old = now_s - shown.get("at_s", 0.0) > _AGAIN_S
        states = {name: _shown_state(each) for name, each in found.vitals.items()}
        changed = [each for name, each in found.vitals.items() if is_old or shown.get(name) != states[name]]
        red = ", ".join(each.reading.vital for each in found.red)
        at_s = now_s if is_old else shown["at_s"]
        return dg.SensorResult(
            asset_events=[evaluation(each, found.at_s) for each in changed],
            skip_reason=None if changed else dg.SkipReason(f"red: {red}" if red else "no vital is red"),
            cursor=json.dumps({**states, "at_s": at_s, "silent_since_s": silent_since_s}),
        )

    return sensor


def current_history(
    settings: Settings, watch: Watch, instance: dg.DagsterInstance, now_s: float, silent_since_s: float | None = None
) -> tuple[VitalHistory, float | None]:
    """Return the watchdog's last findings, or an evaluation at wall ``now_s`` where these are too old.

    Second: since when the watchdog is seen to be silent, ``silent_since_s`` if that was so before; None where it looks,
    or none ever did. A platform that starts has a minute for it.
    """
    found, interval_s = history.load(settings.home), settings.vitals.interval_s
    if now_s - found.watched_s < 2 * interval_s:
        return found, None
    since_s = (silent_since_s or now_s) if found.watched_s else None
    is_silent = since_s is not None and now_s - since_s > _WATCHDOG_STARTS_S

    def read() -> Sequence[Reading]:
        silent_s = now_s - found.watched_s if is_silent else None
        facts = observe(settings, instance, has_daemon=False, watchdog_silent_s=silent_s)
        return evaluate(facts, settings.vitals)

    return watch.round(read, lambda: now_s), since_s


def evaluation(lasting: Lasting, at_s: float) -> dg.AssetCheckEvaluation:
    """Return the outcome of a vital's check, evaluated at wall ``at_s``, as an event without a run."""
    reading = lasting.reading
    times = {"since": lasting.since_s, "evaluated_at": at_s}
    shown = {name: iso(round(seconds * SECOND_NS)) for name, seconds in times.items()}
    return dg.AssetCheckEvaluation(
        asset_key=KEY,
        check_name=reading.vital,
        passed=reading.state is not VitalState.RED,
        description=outcome_text(reading.text),
        metadata={**_facts(reading), **{name: dg.MetadataValue.text(text) for name, text in shown.items()}},
    )


def _facts(reading: Reading) -> dict[str, dg.MetadataValue[Any]]:
    facts: dict[str, dg.MetadataValue[Any]] = {"state": dg.MetadataValue.text(str(reading.state))}
    if reading.faults:
        records = [
            dg.TableRecord({"subject": each.subject, "side": str(each.side), "fault": each.text})
            for each in reading.faults[:_MOST_FAULTS]
        ]
        facts["side_at_fault"] = dg.MetadataValue.text(str(reading.side))
        facts["faults"] = dg.MetadataValue.table(records)
        facts["what_to_do"] = dg.MetadataValue.text(advice(reading.vital))
        facts["runbook"] = dg.MetadataValue.text(f"{RUNBOOK}#{reading.vital}")
    return facts


def _shown_state(lasting: Lasting) -> list[str]:
    """Return what must differ for an event: the state, and who is at fault; not how long it lasts."""
    faults = [f"{each.subject} ({each.side})" for each in lasting.reading.faults]
    return [str(lasting.reading.state), *sorted(faults)]


def _shown(cursor: str | None) -> Mapping[str, Any]:
    try:
        content = json.loads(cursor or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
