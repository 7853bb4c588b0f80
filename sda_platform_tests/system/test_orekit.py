"""Orekit, which is not ours, reads every kind of message that we write, and agrees: states, covariances, times."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import radians
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.formats.cdm import Cdm
from sda_platform.formats.cdm_keywords import COVARIANCE
from sda_platform.formats.conversion import targets_of
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.ocm_writing import write_ocm_kvn, write_ocm_xml
from sda_platform.formats.oem_writing import write_oem_kvn, write_oem_xml
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS
from sda_platform.formats.parameter_messages import ParameterMessage
from sda_platform.formats.time_systems import to_utc_ns, utc_to_tai_ns
from sda_platform.formats.tracking_data import TrackingData
from sda_platform.serving.ephemeris import FRAMES, PredictedObject, in_frame
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.predictions import predicted as prediction_of
from sda_platform.serving.record import StoredElements
from sda_platform.serving.store import IndexStore
from sda_platform.spark.java import JavaMissing, find_java
from sda_platform_tests.support.messages import MESSAGES, READERS, format_of, record_format, values_and_errors, write
from sda_platform_tests.support.sample_inputs import SAMPLES
from sda_platform_tests.support.served_sets import ISS
from sda_platform_tests.unit.serving.catalogues import EPOCH_NS
from sda_platform_tests.unit.serving.source import MemorySource

MILLENNIUM_NS = int(utc_to_tai_ns(946_684_800 * 10**9))
ALSO_OREKITS = ("omm-kvn", "omm-xml", "oem-kvn", "oem-xml", "opm-kvn", "opm-xml", "tdm-kvn", "tdm-xml", "cdm-kvn",
                "cdm-xml", "tle")  # fmt: skip
NOT_OREKITS = {
    "tdm_e21.xml": "its participant is in typographic quotes, which KVN does not have",
}
"""Examples of the standards that Orekit refuses as they are."""
Values = list[Any]


def tai_ns(utc_ns: int) -> int:
    return int(utc_to_tai_ns(utc_ns)) - MILLENNIUM_NS


def inputs() -> Iterator[tuple[str, str, Values]]:
    """Name, kind and values of what is written: each file whose records we can all read."""
    for name, data in {**SAMPLES, **MESSAGES}.items():
        known = record_format(name) if name in SAMPLES and name != "optical-jsonl" else None
        if known is None and (name in SAMPLES or not any(k.begins and k.begins.search(data) for k in READERS)):
            continue
        known = known or format_of(data)
        values, errors = values_and_errors(data, known)
        if values and not errors and name not in NOT_OREKITS:
            yield name, known.name, values[:1] if isinstance(values[0], ElementSet) else values


def system_of(value: Any) -> str:
    if isinstance(value, EphemerisSegment):
        return value.value("TIME_SYSTEM")
    if isinstance(value, TrackingData | ParameterMessage):
        return value.values()["TIME_SYSTEM"]
    return "UTC"


CASES = [
    (f"{target}__{name}", values)
    for name, source, values in inputs()
    if all(system_of(value).upper() in ("UTC", "TAI", "GPS", "TT") for value in values)
    for target in targets_of(source)
    if target in ALSO_OREKITS
]


def predicted(frame: str) -> tuple[Any, ...]:
    """Segments of an object's ephemeris, as the endpoint states them."""
    record = StoredElements(**{**dict.fromkeys(StoredElements._fields), **ISS, "source_name": "celestrak"})
    times_ns = EPOCH_NS + 60 * 10**9 * np.arange(30, dtype=np.int64)
    source = MemorySource()
    source.commit(ISS)
    with tempfile.TemporaryDirectory() as home:
        live = LiveCatalogue(source, IndexStore(Path(home)), lambda: EPOCH_NS)
        live.start()
        with live.view() as view:
            found = prediction_of(view, record, times_ns, ())
        live.close()
    numbers = tuple(in_frame(frame, each) for each in found.stretches)
    return tuple(PredictedObject(record, frame, EPOCH_NS, found, numbers).segments())


OWN = {f"{name}__{frame}": (name, frame) for name in ("oem", "oem-xml", "ocm", "ocm-xml") for frame in FRAMES}
WRITERS: dict[str, Callable[[Sequence[EphemerisSegment]], bytes]] = {
    "oem": write_oem_kvn, "oem-xml": write_oem_xml,
    "ocm": partial(write_ocm_kvn, designator="1998-067A"), "ocm-xml": partial(write_ocm_xml, designator="1998-067A"),
}  # fmt: skip


@pytest.fixture(scope="module")
def read_by_orekit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("orekit_jpype", reason="the package orekit-jpype is not installed")
    try:
        java = find_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("orekit")
    for name, values in CASES:
        (folder / name).write_bytes(write(record_format(name.partition("__")[0]), values))
    for name, (kind, frame) in OWN.items():
        (folder / name).write_bytes(WRITERS[kind](predicted(frame)))
    home = {"JAVA_HOME": str(java.executable.resolve().parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "sda_platform_tests.support.orekit_reader", str(folder)],
        env={**os.environ, **home}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_kind_of_message_that_we_write_is_among_the_files() -> None:
    assert {name.partition("__")[0] for name, _ in CASES} == set(ALSO_OREKITS)
    written = {known.name for known in READERS if known.zone in ("elements", "ephemerides", "tracking", "messages")}
    assert written - set(ALSO_OREKITS) == {"omm-csv", "omm-json", "cdm-json"}, "formats that Orekit does not have"


@pytest.mark.parametrize(("name", "values"), CASES, ids=[name for name, _ in CASES])
def test_orekit_reads_what_we_write_and_agrees(name: str, values: Values, read_by_orekit: dict[str, Any]) -> None:
    theirs = read_by_orekit[name]
    assert not isinstance(theirs, str), theirs
    AGREES[name[:3]](values, theirs)


@pytest.mark.parametrize(("name", "kind", "frame"), [(name, *facts) for name, facts in OWN.items()], ids=list(OWN))
def test_orekit_agrees_with_an_ephemeris_in_any_frame__44(
    name: str, kind: str, frame: str, read_by_orekit: dict[str, Any]
) -> None:
    theirs, ours = read_by_orekit[name], predicted(frame)
    assert not isinstance(theirs, str), theirs
    if not kind.startswith("ocm"):
        _oem(list(ours), theirs)
        return
    assert (theirs["object"], theirs["designator"]) == ("25544", "1998-067A")
    for (their_frame, rows), each in zip(theirs["trajectories"], ours, strict=True):
        assert their_frame == frame
        same_rows(rows, [[tai_ns(t), *(1e3 * s)] for t, s in zip(each.time_ns.tolist(), each.states, strict=True)])
    for (their_frame, rows), each in zip(theirs["covariances"], ours, strict=True):
        assert their_frame == frame
        assert [row[0] for row in rows] == pytest.approx([tai_ns(t) for t in each.covariance_time_ns.tolist()], abs=1)
        terms = np.array([row[1] for row in rows])
        np.testing.assert_allclose(terms, 1e6 * each.covariances, rtol=1e-12, atol=1e-300)


def _oem(values: Values, theirs: list[Any]) -> None:
    for ours, found in zip(values, theirs, strict=True):
        assert (found["object"], found["frame"]) == (ours.value("OBJECT_ID"), ours.value("REF_FRAME").upper())
        scale = np.array([1e3] * 6)
        expected = [
            [tai_ns(int(t)), *(s[:6] * scale)] for t, s in zip(ours.utc_ns(ours.time_ns), ours.states, strict=True)
        ]
        same_rows(found["states"], expected)
        times = [tai_ns(int(t)) for t in ours.utc_ns(ours.covariance_time_ns)]
        assert [each[0] for each in found["covariances"]] == pytest.approx(times, abs=1)
        for (_, frame, terms), covariance, own in zip(
            found["covariances"], ours.covariances, ours.covariance_frames, strict=True
        ):
            assert terms == pytest.approx((covariance * 1e6).tolist(), rel=1e-12, abs=1e-300)
            assert frame == (own or ours.value("REF_FRAME"))


def _opm(values: Values, theirs: dict[str, Any]) -> None:
    ours = values[0].values()
    epoch = to_utc_ns(np.array([parse_epoch_ns(ours["EPOCH"])]), ours["TIME_SYSTEM"])
    assert theirs["epoch"] == tai_ns(int(epoch[0]))
    assert theirs["object"] == ours["OBJECT_ID"]
    state = [1e3 * float(ours[axis]) for axis in ("X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT")]
    assert theirs["state"] == pytest.approx(state, rel=1e-14)
    if "CX_X" in ours:
        assert theirs["covariance"] == pytest.approx([1e6 * float(ours[term]) for term in COVARIANCE_TERMS], rel=1e-12)
    if "MASS" in ours:
        assert theirs["mass"] == float(ours["MASS"])
    burns = [values_of for section, values_of in values[0].sections if section == "maneuverParameters"]
    assert len(theirs["manoeuvres"]) == len(burns)
    for found, entries in zip(theirs["manoeuvres"], burns, strict=True):
        told = {entry.keyword: entry.value for entry in entries}
        assert found[1] == float(told["MAN_DURATION"])
        assert found[2:] == pytest.approx([1e3 * float(told[f"MAN_DV_{axis}"]) for axis in (1, 2, 3)], rel=1e-14)


def _omm(values: Values, theirs: dict[str, Any]) -> None:
    ours = values[0]
    assert theirs["object"] == (ours.international_designator or "UNKNOWN")
    assert theirs["mean_motion_dot"] == pytest.approx(2 * np.pi * ours.mean_motion_dot_rev_per_day2 / 86_400**2)
    _tle(values, theirs)


def _tle(values: Values, theirs: dict[str, Any]) -> None:
    ours = values[0]
    assert abs(theirs["epoch"] - tai_ns(ours.epoch_time_ns)) <= 432_000, "a two-line set has 8 digits of a day"
    angles = (ours.inclination_deg, ours.raan_deg, ours.arg_of_pericenter_deg, ours.mean_anomaly_deg)
    motion = 2 * np.pi * ours.mean_motion_rev_per_day / 86_400
    assert theirs["elements"] == pytest.approx([motion, ours.eccentricity, *map(radians, angles)], rel=1e-8, abs=1e-7)
    assert theirs["norad_id"] == ours.norad_id
    assert theirs["bstar"] == pytest.approx(ours.bstar_per_earth_radius, rel=1e-4, abs=1e-12)
    assert (theirs["revolution"], theirs["number"]) == (ours.revolution_at_epoch, ours.element_set_number)


def _cdm(values: Values, theirs: dict[str, Any]) -> None:
    ours = values[0]
    assert isinstance(ours, Cdm)
    assert theirs["tca"] == tai_ns(ours.tca_time_ns)
    assert theirs["miss"] == pytest.approx(ours.miss_distance_m, rel=1e-12)
    if "COLLISION_PROBABILITY" in ours.fields:
        assert theirs["pc"] == pytest.approx(float(ours.fields["COLLISION_PROBABILITY"]), rel=1e-12)
    for found, mine in zip(theirs["objects"], ours.objects, strict=True):
        assert found["designator"] == mine.fields["OBJECT_DESIGNATOR"]
        state = [*mine.position_km, *mine.velocity_km_s]
        assert found["state"] == pytest.approx([1e3 * each for each in state], rel=1e-13)
        lower = [1e6 * mine.covariance_rtn[row, column] for _, row, column in COVARIANCE]
        assert found["covariance"] == pytest.approx(lower, rel=1e-12)


_SI = {
    "RANGE": 1e3, "ANGLE_1": np.pi / 180, "ANGLE_2": np.pi / 180, "DOPPLER_INSTANTANEOUS": 1e3,
    "DOPPLER_INTEGRATED": 1e3, "PRESSURE": 100.0, "RHUMIDITY": 0.01, "STEC": 1e16,
}  # fmt: skip
"""What a value is multiplied with to be in SI units."""


def _tdm(values: Values, theirs: list[Any]) -> None:
    found = [tuple(each) for segment in theirs for each in segment["measured"]]
    expected = [
        (entry.keyword, tai_ns(each.utc_ns()), float(entry.value) * _factor(entry.keyword, each))
        for each in values
        for entry in each.measured
    ]
    assert [each[:2] for each in found] == [each[:2] for each in expected]
    assert [each[2] for each in found] == pytest.approx([each[2] for each in expected], rel=1e-13, abs=1e-300)
    participants = {name for segment in theirs for name in segment["participants"]}
    told = [value for each in values for name, value in each.values().items() if name.startswith("PARTICIPANT_")]
    assert participants == set(told)


def _factor(keyword: str, each: TrackingData) -> float:
    # Without RANGE_UNITS a range is in km (503.0-B-2, table 3-3); Orekit gives it as it is.
    if keyword == "RANGE" and each.values().get("RANGE_UNITS", "").lower() != "km":
        return 1.0
    return _SI.get(keyword, 1.0)


def same_rows(found: list[list[float]], expected: list[list[Any]]) -> None:
    """Rows of a time in ns, which may be cut at 1 ns, and numbers."""
    assert [abs(one[0] - other[0]) <= 1 for one, other in zip(found, expected, strict=True)] == [True] * len(expected)
    np.testing.assert_allclose(
        np.array([row[1:] for row in found]), np.array([row[1:] for row in expected]), rtol=1e-13, atol=1e-9
    )


AGREES: dict[str, Callable[[Values, Any], None]] = {
    "oem": _oem, "opm": _opm, "omm": _omm, "cdm": _cdm, "tdm": _tdm, "tle": _tle
}  # fmt: skip
