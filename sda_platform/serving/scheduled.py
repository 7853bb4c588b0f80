"""The schedule of the sensors over HTTP: rows, or tasks that observatory software reads."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from sda_platform.formats.observing_tasks import Camera, ObservingTask, encode_sensorkit
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.serving.conditional import of_tables
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.rendering import LEFT_OUT, element_set, json_rows
from sda_platform.serving.requests import as_of, in_thread, instant, seconds_of, view_of, word_of
from sda_platform.serving.source import Rows
from sda_platform.serving.view import View

FORMATS: Final = ("json", "sensorkit")
FRAME_S: Final = 0.001, 3600.0
"""Shortest and longest exposure, and time from frame to frame."""
_OF_CAMERA: Final = tuple(Camera.__dataclass_fields__)


async def schedule(request: Request) -> Response:
    """Return the scheduled observations that end after ``since``, by their beginning."""
    return await in_thread(request, _schedule, request)


def _schedule(request: Request) -> Response:
    live: LiveCatalogue = request.app.state.live
    name = word_of(request, "format", FORMATS)
    camera = _camera(request)
    since_ns, until_ns = instant(request, "since", ALWAYS_NS), instant(request, "until", FOREVER_NS)
    source_id = request.query_params.get("source_id")
    rows = [
        row
        for row in live.source.schedule(as_of(request))
        if row["end_time_ns"] > since_ns and row["start_time_ns"] < until_ns and source_id in (None, row["source_id"])
    ]
    if name == "json":
        return of_tables(request, Response(json_rows(rows), 200, media_type="application/json"))
    with view_of(request) as view:
        body, left_out = sensorkit_tasks(view, rows, camera)
    headers = {LEFT_OUT: str(left_out)} if left_out else {}
    return of_tables(request, Response(body, 200, headers, "application/json"))


def sensorkit_tasks(view: View, rows: Rows, camera: Camera) -> tuple[bytes, int]:
    """Return the rows as SensorKit's tasks, and how many were left out because their object has no element set."""
    found: list[tuple[ObservingTask, Any]] = []
    for row in rows:
        task = ObservingTask(**{name: row[name] for name in ObservingTask.__dataclass_fields__})
        found += [(task, element_set(each)) for each in view.in_force_at(task.norad_id, [task.start_time_ns])]
    try:
        return encode_sensorkit(found, camera), len(rows) - len(found)
    except ValueError:  # two lines cannot hold every epoch
        found = [each for each in found if _fits(each, camera)]
        return encode_sensorkit(found, camera), len(rows) - len(found)


def _fits(task: tuple[ObservingTask, Any], camera: Camera) -> bool:
    try:
        encode_sensorkit([task], camera)
    except ValueError:
        return False
    return True


def _camera(request: Request) -> Camera:
    usual = Camera()
    return Camera(**{name: seconds_of(request, name, getattr(usual, name), *FRAME_S) for name in _OF_CAMERA})
