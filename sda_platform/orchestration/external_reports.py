"""External assets: state of another process, which a sensor queries and reports to Dagster.

A sensor of external assets starts no run. It reports a materialization when the content of an asset has changed, and
the outcome of the asset's check when content or outcome have changed.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, Final

import dagster as dg

from sda_platform.orchestration.materialization import LONGEST_OUTCOME, outcome_text

_DATA_VERSION: Final = "dagster/data_version"
Events = list[dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation]


@dataclass(frozen=True)
class ExternalState:
    """An external asset as its process describes it.

    ``mark`` identifies the content: another one is an event. ``is_data_version``: it is the version of the data, and
    the event a materialization; else an observation. ``problems``: what fails ``check``.
    """

    key: dg.AssetKey
    check: str
    mark: str
    is_data_version: bool = False
    problems: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        """The text of the check; empty if it passes."""
        return shorten("; ".join(self.problems), LONGEST_OUTCOME, placeholder=" …")

    def result(self) -> dg.AssetCheckResult:
        """Return the outcome for a check that is executed."""
        return dg.AssetCheckResult(
            passed=not self.problems,
            severity=dg.AssetCheckSeverity.WARN,
            description=outcome_text(self.outcome),
            metadata=dict(self.metadata),
        )

    def event(self) -> dg.AssetMaterialization | dg.AssetObservation:
        """Report the content as a Dagster event."""
        if not self.is_data_version:
            return dg.AssetObservation(self.key, metadata=dict(self.metadata))
        return dg.AssetMaterialization(self.key, metadata=dict(self.metadata), tags={_DATA_VERSION: self.mark})

    def evaluation(self) -> dg.AssetCheckEvaluation:
        """Report the outcome as a Dagster event."""
        return dg.AssetCheckEvaluation(
            asset_key=self.key,
            check_name=self.check,
            passed=not self.problems,
            severity=dg.AssetCheckSeverity.WARN,
            description=outcome_text(self.outcome),
            metadata=dict(self.metadata),
        )


def external_sensor(
    name: str, description: str, interval_s: int, ask: Callable[[dg.SensorEvaluationContext], list[ExternalState]]
) -> dg.SensorDefinition:
    """A sensor that reports the result of ``ask(resources)`` every ``interval_s`` seconds."""
    return dg.SensorDefinition(
        name=name,
        evaluation_fn=lambda context: reported(context, ask(context)),
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=description,
        required_resource_keys={"lake"},
    )


def reported(context: dg.SensorEvaluationContext, states: Iterable[ExternalState]) -> dg.SensorResult | dg.SkipReason:
    """Return the events for what differs from the last tick; the cursor holds what was reported."""
    known: dict[str, list[str]] = json.loads(context.cursor) if context.cursor else {}
    events: Events = []
    found: dict[str, list[str]] = {}
    for state in states:
        name = state.key.to_user_string()
        before = known.get(name, ["", ""])
        found[name] = [state.mark, state.outcome]
        if state.mark != before[0]:
            events.append(state.event())
        if found[name] != known.get(name):
            events.append(state.evaluation())
    if not found:
        return dg.SkipReason("the process that this sensor queries does not run here")
    if not events:
        return dg.SkipReason(f"{len(found)} external assets are as they were reported")
    return dg.SensorResult(asset_events=events, cursor=json.dumps(found))
