"""Who reports, how late, and who has fallen silent (DP3-I2, I3, O2, G3, E20)."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sda_platform.clock import MissionClock
from sda_platform.formats.closures import Closure, closed_upto
from sda_platform.fusion.checks import check_earth_orientation, check_open_state, check_silent_sensors
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import arrivals, lags_ms, silences, source_watermarks
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE, advance
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.observability.sensor_states import sensor_states
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import Facts
from sda_platform.observability.vitals.lake_facts import lake_facts
from sda_platform.orbits.earth_parameters import published_span_ns
from sda_platform.orbits.sensing.sensors import shipped_list
from sda_platform.setting_sections import GrowthSettings, VitalsSettings
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delta_tables import commit, lake_at, no_engine
from sda_platform_tests.support.segments import after

LATENESS = FusionResource().lateness
ALL = {"radar-1": 1.0, "radar-2": 2.0, "optical-maui": 1.0, "isl-44713": 2.0}


def s(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def heard(events: Mapping[str, float], delay_s: float = 0.5) -> pa.Table:
    """New observations, one of each source, by the second of the day at which it was made."""
    return pa.table(
        {
            "source_kind": [name.partition("-")[0] for name in events],
            "source_id": list(events),
            "sensor_time_ns": pa.array([after(at) for at in events.values()], pa.int64()),
            "received_time_ns": pa.array([after(at + delay_s) for at in events.values()], pa.int64()),
        }
    )


def followed(*batches: tuple[Mapping[str, float], float]) -> dict[str, int]:
    """The marks after these batches of sources and event times, each committed at a second of the day."""
    marks: dict[str, int] = {}
    for events, at in batches:
        table = heard(events)
        fresh = advance(marks, arrivals(table), LATENESS, after(at))
        marks = {**fresh, **source_watermarks(marks, table, fresh, LATENESS.bound_ns, after(at))}
    return marks


def test_lag_is_split_into_the_sources_and_ours__DP3_I2_O2() -> None:
    found = lags_ms(heard({"radar-1": 10.0, "radar-2": 10.0}, delay_s=0.08), after(13))
    assert found == {"skewed": 0, "radar_source_lag_ms": 80, "radar_pipeline_lag_ms": 2920}


def test_reception_before_measurement_is_a_skewed_clock_and_no_negative_lag__DP3_I3() -> None:
    found = lags_ms(heard({"isl-1": 10.0}, delay_s=-0.25), after(13))
    assert (found["skewed"], found["isl_source_lag_ms"]) == (1, 0)


def test_a_kind_that_never_reported_is_named_after_a_minute__DP3_G3() -> None:
    marks = followed(({"radar-1": 1.0, "isl-1": 1.0}, 2.0), ({"radar-1": 50.0}, 51.0))
    assert silences(marks, after(61)) == []
    (found,) = silences(marks, after(63))
    assert found.source == "optical"
    assert found.describe(after(63)).startswith("optical never reported, awaited since 2024-11-01T00:00:02")


def test_a_kind_is_no_longer_awaited_once_it_has_reported() -> None:
    marks = followed(({"radar-1": 1.0, "isl-1": 1.0}, 2.0), ({"optical-maui": 3.0}, 70.0))
    assert silences(marks, after(500)) == []


@pytest.mark.parametrize(
    ("name", "dead_from_s"), [("radar-2", 602), ("isl-44713", 602), ("optical-maui", 36 * 3600 + 1)]
)
def test_a_sensor_that_falls_silent_is_named__E20(name: str, dead_from_s: float) -> None:
    others = {source: dead_from_s for source in ALL if source != name}
    marks = followed((ALL, 3.0), (others, dead_from_s + 1))
    assert silences(marks, after(dead_from_s)) == []
    assert [each.source for each in silences(marks, after(dead_from_s + 1))] == [name]


def test_a_closed_sensor_is_not_silent_and_counts_anew_when_it_opens() -> None:
    marks = followed((ALL, 3.0), ({name: 5000.0 for name in ALL if name != "radar-2"}, 5001.0))
    closures = [Closure("radar-2", after(900), after(2000), "storm"), Closure("radar-2", after(1500), after(3000), "")]

    def silent(at_s: float) -> list[str]:
        return [each.source for each in silences(marks, after(at_s), excused_upto=closed_upto(closures, after(at_s)))]

    assert [silent(at) for at in (899, 900, 2500, 3599, 3602)] == [["radar-2"], [], [], [], ["radar-2"]]


def test_closed_sensors_are_left_out_of_the_silence_of_all() -> None:
    marks = followed((ALL, 3.0))
    excused = closed_upto([Closure("radar-2", after(0), after(9000), "")], after(100))
    (found,) = silences(marks, after(100), excused_upto=excused, all_after_ns=40 * SECOND_NS)
    assert found.source == "every source of isl, radar"


def test_a_sensor_stays_silent_while_all_fall_silent() -> None:
    """Its fault was reported as over when a loaded machine received nothing for 40 s, and begun again after it."""
    others = {source: 580.0 for source in ALL if source != "radar-2"}
    marks = followed((ALL, 3.0), (others, 581.0))
    expected = {
        610: ["radar-2"],
        630: ["every source of isl, radar", "radar-2"],
        1300: ["every source of isl, radar", "radar-2"],
    }
    for at_s, names in expected.items():
        assert [each.source for each in silences(marks, after(at_s), all_after_ns=40 * SECOND_NS)] == names


def test_a_clock_that_runs_ahead_keeps_no_source_alive() -> None:
    marks = followed((ALL, 3.0), ({"radar-1": 9e6}, 4.0), ({"isl-44713": 700.0}, 701.0))
    assert [each.source for each in silences(marks, after(701))] == ["radar-1", "radar-2"]


def test_the_list_of_sources_forgets_what_is_gone() -> None:
    marks = followed((ALL, 3.0), ({"radar-1": 8 * 86_400.0}, 8 * 86_400 + 1))
    assert [name for name in marks if name.startswith("heard/")] == ["heard/radar-1"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which telescopes were never heard of, read ten minutes later."""
    lake = lake_at(tmp_path / "lake", now_ns=after(10))
    seen = {"radar-1": 1.0, "isl-44713": 2.0}
    rows = heard(seen).to_pylist()
    commit(lake, OBSERVATIONS, [{**row, "observation_id": row["source_id"]} for row in rows])
    commit(lake, FUSED_TRACKS, watermarks=followed((seen, 3.0)))
    return lake


def later(lake: Lake, seconds: float) -> Lake:
    return Lake(lake.uri, MissionClock(after(seconds), 0, 0.0), no_engine)


def test_the_check_and_the_status_name_the_dead__DP3_G3(lake: Lake, tmp_path: Path) -> None:
    assert check_silent_sensors(later(lake, 60)).passed
    red = check_silent_sensors(later(lake, 640))
    assert not red.passed
    assert (red.description or "").startswith("3 sources silent, longest radar-1 for 639 s")
    assert [text.split(" ")[0] for text in red.metadata["sources"].value] == ["optical", "isl-44713", "radar-1"]  # type: ignore[union-attr]
    lived = lake_facts(
        later(lake, 640), str(tmp_path / "landing"), GrowthSettings(), orphan_grace_s=0.0, wall_s=time.time()
    )
    (vital,) = [each for each in evaluate(Facts(**lived), VitalsSettings()) if each.vital == "sources_report"]
    assert [fault.subject for fault in vital.faults] == ["optical", "every source of isl, radar"]
    assert vital.side == "sources"


def test_a_closure_and_the_list_end_the_silence_of_a_sensor_wherever_it_is_judged(lake: Lake, tmp_path: Path) -> None:
    """Once tried and then taken out of the list, or closed: no fault; what reports unlisted is one for a day."""
    landing, closure = str(tmp_path / "landing"), Closure("radar-1", after(500), after(9000), "antenna lifted")

    apart = VitalsSettings(silence_of_all_s=1e9)

    def judged(at_s: float, *listed: str, closures: Sequence[Closure] = ()) -> list[list[str]]:
        header, *lines = shipped_list().splitlines()
        path = tmp_path / "sensors.csv"
        path.write_text("\n".join([header, *(line for line in lines if line.startswith(listed))]))
        fusion, store = FusionResource(sensors=str(path)), later(lake, at_s)
        arguments: dict[str, Any] = {"sensors": fusion, "closures": closures, "wall_s": time.time(), "rules": apart}
        facts = lake_facts(store, landing, GrowthSettings(), orphan_grace_s=0.0, **arguments)
        check = check_silent_sensors(store, {}, fusion.network(), closures).metadata["sources"].value
        silent = [
            [each.source for each in facts["silences"]],
            [text.split(" ")[0] for text in check],  # type: ignore[union-attr]
            [each.source_id for each in sensor_states(store, landing, fusion.network(), closures) if each.silence],
            [each.subject for each in facts["unlisted"]],
        ]
        return [[name for name in names if name == "radar-1"] for names in silent]

    assert judged(700, "radar-1,", "radar-3,") == [["radar-1"]] * 3 + [[]]
    assert judged(700, "radar-1,", "radar-3,", closures=[closure]) == [[]] * 4
    assert judged(9601, "radar-1,", closures=[closure]) == [["radar-1"]] * 3 + [[]]
    assert judged(700, "radar-3,") == [[]] * 3 + [["radar-1"]]
    assert judged(90_000, "radar-3,") == [[]] * 4


def test_records_that_wait_to_be_decoded_are_no_silence(lake: Lake, tmp_path: Path) -> None:
    """A run that took half a minute has committed records: what arrived meanwhile is in them."""
    commit(lake, RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=[TableWindow(RAW_RECORDS.name, 0, 1, -1, 0)])

    def silent() -> list[str]:
        arguments = (str(tmp_path / "landing"), GrowthSettings())
        found = lake_facts(later(lake, 55), *arguments, orphan_grace_s=0.0, wall_s=time.time())["silences"]
        return [each.source for each in found]

    assert silent() == ["every source of isl, radar"]
    commit(later(lake, 50), RAW_RECORDS)
    assert silent() == []
    commit(later(lake, 52), OBSERVATIONS, windows=[TableWindow(RAW_RECORDS.name, 1, 2, 0, 1)])
    assert silent() == ["every source of isl, radar"]


def test_the_open_span_is_reported_and_bounded__DP3_Q5(lake: Lake) -> None:
    marks = followed((ALL, 3.0), (dict.fromkeys(ALL, 60.0), 61.0))
    commit(lake, OBSERVATIONS, [{"observation_id": "o", "sensor_time_ns": after(60)}])
    commit(lake, FUSED_TRACKS, watermarks=marks)
    fine = check_open_state(lake, FusionResource())
    assert fine.passed
    assert (fine.metadata["open_observations"].value, fine.metadata["open_s"].value) == (3, 60.0)


def test_a_kind_that_never_reported_grows_the_open_span_and_is_reported__DP3_Q5(lake: Lake) -> None:
    seen = {"radar-1": 200.0, "isl-44713": 200.0}
    commit(lake, FUSED_TRACKS, watermarks=followed(({"radar-1": 1.0}, 3.0), (seen, 201.0)))
    stalled = check_open_state(lake, FusionResource())
    assert not stalled.passed
    assert stalled.description == "197 s of observations are open, the limit is 155 s"


def test_state_stays_within_window_and_lateness_of_a_steady_stream__DP3_Q5() -> None:
    """Ten minutes of a commit a second: what the next commit must still take is never more than promised."""
    fusion = FusionResource()
    marks: dict[str, int] = {}
    for second in range(2, 602):
        table = heard(dict.fromkeys(ALL, second - 1.0))
        marks = advance(marks, arrivals(table), LATENESS, after(second))
        open_from = marks[PIPELINE] - LATENESS.allowed_ns - fusion.window_ns
        assert after(second) - open_from <= 2 * fusion.window_ns + LATENESS.allowed_ns + s(1)


def test_all_observers_in_orbit_are_one_source() -> None:
    seen = {f"optical-orbit-{number}": 1.0 + number for number in range(5)}
    marks = followed((ALL | seen, 8.0), ({"optical-orbit-9": 20.0}, 21.0))
    told = {name: at for name, at in marks.items() if "optical" in name and name.startswith("heard/")}
    assert told == {"heard/optical-maui": after(1.0), "heard/optical-orbit": after(20.0)}


def test_the_end_of_the_earth_orientation_is_announced_a_month_before() -> None:
    last_ns = published_span_ns()[1]
    assert check_earth_orientation(last_ns - 31 * 86_400 * 10**9).passed
    outcome = check_earth_orientation(last_ns - 29 * 86_400 * 10**9)
    assert not outcome.passed and "update the package astropy-iers-data" in str(outcome.description)
