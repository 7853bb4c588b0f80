"""Scheduled observations as observatory software reads them: task submissions of SensorKit, as JSON.

SensorKit (2.0) runs telescopes. One of its programs offers times and submits tasks; a task tracks a two-line element
set while the camera takes frames. Written here is what such a program needs: `docs/how-to/sensorkit_program.py`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from sda_platform.clock import iso
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.tle_writing import MOST_ALPHA_5, encode_tles
from sda_platform.units import SECOND_NS

_UNNUMBERED: Final = 0
_UNUSED: Final[Mapping[str, Any]] = MappingProxyType(
    dict.fromkeys(("international_designator", "mean_motion_dot_rev_per_day2", "mean_motion_ddot_rev_per_day3"))
)
"""What SGP4 does not use: absent."""


@dataclass(frozen=True)
class ObservingTask:
    """Antenna or telescope time for one object: Unix time ns, UTC."""

    request_id: str
    source_id: str
    norad_id: int
    priority_class: int
    start_time_ns: int
    end_time_ns: int


@dataclass(frozen=True)
class Camera:
    """How a telescope takes frames: one of ``exposure_s`` each ``interval_s`` seconds."""

    exposure_s: float = 2.0
    interval_s: float = 10.0


def encode_sensorkit(tasks: Iterable[tuple[ObservingTask, ElementSet]], camera: Camera) -> bytes:
    """Return the tasks, each with the element set to track, as a JSON list of offered times with SensorKit's
    submissions.

    The two lines of an object whose number does not fit into them have number 0; ``target_id`` names it. Where a value
    that SGP4 does not use does not fit, they have none. Raises ValueError for an epoch that two lines cannot hold.
    """
    return json.dumps([_submission(task, elements, camera) for task, elements in tasks], indent=1).encode()


def _submission(task: ObservingTask, elements: ElementSet, camera: Camera) -> dict[str, Any]:
    fits = elements.norad_id <= MOST_ALPHA_5
    unnamed = replace(elements, object_name=None, norad_id=elements.norad_id if fits else _UNNUMBERED)
    try:
        lines = encode_tles([unnamed])
    except ValueError:
        lines = encode_tles([replace(unnamed, **_UNUSED)])
    line1, line2 = lines.decode().splitlines()
    duration_s = (task.end_time_ns - task.start_time_ns) / SECOND_NS
    frames = max(1, int(duration_s // camera.interval_s))
    return {
        "request_id": task.request_id,
        "source_id": task.source_id,
        "priority_class": task.priority_class,
        "offer": {"begin": iso(task.start_time_ns), "end": iso(task.end_time_ns)},
        "submission": {
            "task": {
                "task_type": "standard_collect",
                "target_id": str(elements.norad_id),
                "target": {
                    "target_type": "tle",
                    "frame": "teme",
                    "tle": {"line0": elements.object_name, "line1": line1, "line2": line2},
                },
                "camera_params": {"integration_time_seconds": camera.exposure_s, "frame_count": frames},
            },
            "expiry_time": iso(task.end_time_ns),
        },
    }
