"""Pictures with names of others: whatever a sensor, station or member is called, the picture is drawn."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from sda_platform.formats.ground_events import LINK_EVENTS
from sda_platform.fusion import plots as of_fusion
from sda_platform.fusion.association_quality import OUTCOMES, AssociationOutcomes
from sda_platform.ground import pictures as of_ground
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform.plots import png_of
from sda_platform.tasking import pictures as of_tasking
from sda_platform.units import HOUR_NS
from sda_platform_tests.support.hostile import HOSTILE

NAMES = (HOSTILE["formula"], r"$\bad{ x$ $x^{$")
"""What matplotlib would draw as a formula; the second one is none, and stops it."""
Draw = Callable[[str], object]


def _task(sensor: str) -> Mapping[str, Any]:
    return {
        "source_id": sensor, "priority_class": 1, "start_time_ns": 0, "end_time_ns": HOUR_NS, "norad_id": 1,
        "aos_time_ns": 0, "los_time_ns": HOUR_NS, "expected_gain": 1.0, "realised_gain": 2.0,
    }  # fmt: skip


def _biases(sensor: str) -> object:
    one = np.ones(1)
    return of_fusion.residuals(TimeTagBiases(np.array([sensor]), one, one, np.ones(1, int), np.ones(1, int), one, one))


def _association(sensor: str) -> object:
    first = np.zeros(1, int)
    return of_fusion.association(
        AssociationOutcomes(np.array([sensor]), first, np.array([OUTCOMES[0]]), first, np.array([0.5]))
    )


def _timeline(station: str) -> object:
    event = {"event": next(iter(LINK_EVENTS)), "event_time_ns": 0, "station": station, "uplink": "primary", "token": 1}
    return of_ground.timeline([event])


def _views(member: str) -> object:
    return of_ground.views_picture([{"member": member, "views": json.dumps({member: [0, 0, 0]})}])


def _game_days(fault: str) -> object:
    row = {
        "fault": fault, "started_time_ns": 0, "skipped": "", "detected_after_s": 1.0, "detect_within_s": 2.0,
        "recovered_after_s": None, "recover_within_s": 2.0,
    }  # fmt: skip
    return of_ground.game_days_picture([row])


DRAWN: Sequence[tuple[str, Draw]] = (
    ("gantt chart", lambda name: png_of(of_tasking.gantt_chart([_task(name)], 0))),
    ("coverage map", lambda name: png_of(of_tasking.coverage_map([_task(name)], [_task(name)], 0))),
    ("gains", lambda name: png_of(of_tasking.gains_plot([_task(name)]))),
    ("biases", _biases),
    ("association", _association),
    ("timeline", _timeline),
    ("views", _views),
    ("game days", _game_days),
)


@pytest.mark.parametrize("draw", [draw for _, draw in DRAWN], ids=[name for name, _ in DRAWN])
def test_a_picture_is_drawn_whatever_a_name_contains(draw: Draw) -> None:
    for name in NAMES:
        assert draw(name)
