"""Writers keep what readers use: read, write, read again gives the same physics; other readers agree."""

import csv
import io
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import ccsds_ndm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sgp4 import omm
from sgp4.api import Satrec
from skyfield.api import EarthSatellite, load

from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.formats.cdm import Cdm, read_cdm
from sda_platform.formats.cdm_json import read_cdm_json
from sda_platform.formats.conversion import converted, targets_of
from sda_platform.formats.cutting import split_records
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.reading import read_records
from sda_platform.formats.registry import FORMATS, known_format
from sda_platform.formats.tracking_data import TrackingData

DATA = Path(__file__).parents[2] / "data"
FIELD, CCSDS = DATA / "field", DATA / "messages" / "ccsds"
TIMESCALE = load.timescale(builtin=True)
ELEMENTS = ("omm-csv", "omm-json", "omm-kvn", "omm-xml", "tle")

element_sets = st.builds(
    ElementSet,
    norad_id=st.integers(1, 339_999),
    object_name=st.none() | st.sampled_from(["ISS (ZARYA)", "A, B", 'SAY "HI"', "STARLINK-1 [DTC]"]),
    international_designator=st.none() | st.sampled_from(["1998-067A", "2024-001ABC", "2056-999Z"]),
    epoch_time_ns=st.integers(-386_000_000, 2_700_000_000).map(lambda s: s * 1_000_000_000 + 864_000_000),
    mean_motion_rev_per_day=st.integers(10**6, 17 * 10**8).map(lambda n: n / 1e8),
    eccentricity=st.integers(0, 9_999_999).map(lambda n: n / 1e7),
    inclination_deg=st.integers(0, 1_800_000).map(lambda n: n / 1e4),
    raan_deg=st.integers(0, 3_599_999).map(lambda n: n / 1e4),
    arg_of_pericenter_deg=st.integers(0, 3_599_999).map(lambda n: n / 1e4),
    mean_anomaly_deg=st.integers(0, 3_599_999).map(lambda n: n / 1e4),
    bstar_per_earth_radius=st.integers(-99_999, 99_999).map(lambda n: n / 1e8),
    mean_motion_dot_rev_per_day2=st.integers(-(10**7), 10**7).map(lambda n: n / 1e8),
    mean_motion_ddot_rev_per_day3=st.just(0.0),
    element_set_number=st.integers(0, 9999),
    classification=st.sampled_from("UCS"),
    revolution_at_epoch=st.integers(0, 99_999),
)


def read(data: bytes, name: str) -> list[Any]:
    values, errors = read_records(list(split_records(data, name)), name, known_format(name).zone)
    assert errors == {}
    return values


def written(values: list[Any], name: str) -> bytes:
    data: bytes = known_format(name).write(values)  # type: ignore[attr-defined]
    return data


def close(ours: ElementSet, theirs: ElementSet) -> None:
    """Equal, but for the last digit that a two-line set has of B* and of the epoch."""
    for field in fields(ElementSet):
        if not field.compare:
            continue
        one, other = getattr(ours, field.name), getattr(theirs, field.name)
        if isinstance(one, float):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-12), field.name
        elif field.name == "object_name":  # a message must state one
            assert (one or "UNKNOWN") == (other or "UNKNOWN")
        elif field.name == "epoch_time_ns":
            assert abs(one - other) <= 432_000
        else:
            assert one == other, field.name


@given(st.lists(element_sets, min_size=1, max_size=3))
@pytest.mark.parametrize("first", ELEMENTS)
def test_element_sets_keep_everything_from_any_format_to_any_other(first: str, sets: list[ElementSet]) -> None:
    named = [replace(each, originator=None) for each in sets]
    once = read(written(named, first), first)
    for second in ELEMENTS:
        again = read(written(once, second), second)
        for ours, theirs in zip(again, named, strict=True):
            close(ours, theirs)


@settings(max_examples=10)
@given(element_sets)
def test_python_sgp4_and_skyfield_read_every_file_of_elements_and_agree(element: ElementSet) -> None:
    line = next(csv.DictReader(io.StringIO(written([element], "omm-csv").decode())))
    (parsed,) = json.loads(written([element], "omm-json"))
    (from_xml,) = omm.parse_xml(io.StringIO(written([element], "omm-xml").decode()))
    for found in (line, parsed, from_xml):
        satellite = Satrec()
        omm.initialize(satellite, found)
        assert satellite.revnum == element.revolution_at_epoch
        assert satellite.ecco == pytest.approx(element.eccentricity, abs=1e-12)
        assert satellite.bstar == pytest.approx(element.bstar_per_earth_radius, abs=1e-12)
    EarthSatellite.from_omm(TIMESCALE, line)
    first, second = written([element], "tle").decode().splitlines()[-2:]
    lines = Satrec.twoline2rv(first, second)
    assert lines.ecco == pytest.approx(element.eccentricity, abs=1e-12)
    assert lines.classification == element.classification
    assert lines.revnum == element.revolution_at_epoch
    assert lines.bstar == pytest.approx(element.bstar_per_earth_radius, rel=1e-4, abs=1e-12)
    for name in ("omm-kvn", "omm-xml"):
        ccsds_ndm.from_str(written([element], name).decode())


numbers = st.floats(-1e4, 1e4, allow_subnormal=False)


@given(st.lists(st.lists(numbers, min_size=6, max_size=6), min_size=2, max_size=5), st.sampled_from(["TNW", "RTN", ""]))
def test_ephemerides_keep_every_digit_of_states_and_covariances(states: list[list[float]], frame: str) -> None:
    (like,) = read((FIELD / "052-oem-covariance-tnw.oem").read_bytes(), "oem-kvn")
    assert isinstance(like, EphemerisSegment)
    segment = replace(
        like,
        time_ns=like.time_ns[: len(states)],
        states=np.array(states),
        covariance_time_ns=like.time_ns[:1],
        covariances=np.linspace(-1e-7, 1 / 3, 21)[None],
        covariance_frames=(frame,),
        comments=("a remark",),
    )
    for first in ("oem-kvn", "oem-xml"):
        (once,) = read(written([segment], first), first)
        for second in ("oem-kvn", "oem-xml"):
            (again,) = read(written([once], second), second)
            np.testing.assert_array_equal(again.states, segment.states)
            np.testing.assert_array_equal(again.covariances, segment.covariances)
            np.testing.assert_array_equal(again.time_ns, segment.time_ns)
            assert again.covariance_frames == ((frame or "EME2000"),)
            assert again.comments == segment.comments
            ccsds_ndm.from_str(written([once], second).decode())


@pytest.mark.parametrize("path", sorted(CCSDS.glob("tdm_e*.kvn")), ids=lambda path: path.stem)
def test_tracking_data_keep_quality_corrections_and_epochs(path: Path) -> None:
    before = read(path.read_bytes(), "tdm-kvn")
    for target in ("tdm-kvn", "tdm-xml"):
        after = read(written(before, target), target)
        assert [_content(each) for each in after] == [_content(each) for each in before]


def test_comments_of_tracking_data_stand_at_the_beginning_of_its_data_only__41() -> None:
    """The standard (503.0-B-2) has them there, and Orekit refuses others."""
    whole = (CCSDS / "tdm_e8.kvn").read_text()
    lines = whole.splitlines()
    second = next(row for row in range(len(lines)) if lines[row].startswith("RANGE = 2007-08-29T07:00"))
    before = read("\n".join([*lines[:second], "COMMENT the gain was changed", *lines[second:], ""]).encode(), "tdm-kvn")
    data = written(before, "tdm-kvn").decode()
    assert [line for line in data.partition("COMMENT the gain")[0].splitlines() if line.strip()][-1] == "DATA_START"
    after = read(data.encode(), "tdm-kvn")
    assert [(each.comments, _content(each)) for each in after] == [(each.comments, _content(each)) for each in before]


def test_a_message_without_an_object_is_written_with_the_id_that_the_standard_has_for_it__41() -> None:
    (element,) = read((DATA / "messages" / "orekit" / "OMM-empty-object-id.txt").read_bytes(), "omm-kvn")
    assert element.international_designator is None
    for name in ("omm-kvn", "omm-xml"):
        data = written([element], name)
        assert b"UNKNOWN" in data[data.index(b"OBJECT_ID") :][:40]
        assert read(data, name)[0].international_designator is None


def _content(each: TrackingData) -> tuple[Any, ...]:
    return each.values(), each.numbers(), each.utc_ns() if each.values()["TIME_SYSTEM"] == "UTC" else each.epoch


CDM = (FIELD / "057-cdm-kilometres-relabelled.cdm").read_text()


@settings(max_examples=6)
@given(
    miss=st.floats(0.01, 10),
    radius=st.none() | st.floats(0.5, 50),
    area=st.none() | st.floats(0.1, 500),
    sigma=st.floats(1, 1e4),
    is_keyword=st.booleans(),
)
@pytest.mark.parametrize("target", ["cdm-kvn", "cdm-xml", "cdm-json"])
def test_a_conjunction_keeps_its_risk_radius_and_areas(
    target: str, miss: float, radius: float | None, area: float | None, sigma: float, is_keyword: bool
) -> None:
    text = CDM.replace("MISS_DISTANCE = 0.15 [km]", f"MISS_DISTANCE = {miss!r} [km]")
    text = text.replace("X = 7000.15 [km]", f"X = {7000 + miss!r} [km]").replace("CR_R = 100", f"CR_R = {sigma**2!r}")
    if radius is not None:
        stated = f"HBR = {radius!r} [m]" if is_keyword else f"COMMENT HBR = {radius!r} [m]"
        text = text.replace("OBJECT = OBJECT1", f"{stated}\nOBJECT = OBJECT1")
    if area is not None:
        text = text.replace("REF_FRAME = EME2000", f"REF_FRAME = EME2000\nAREA_PC = {area!r} [m**2]", 1)
    before = read_cdm(text.encode())
    (after,) = read(converted(text.encode(), "cdm-kvn", target).data, target)
    assert isinstance(after, Cdm)
    ours, theirs = message_risk(before), message_risk(after)
    assert theirs.pc == pytest.approx(ours.pc, rel=1e-9)
    assert theirs.miss_km == pytest.approx(ours.miss_km, rel=1e-12)
    assert theirs.hard_body_radius_m == pytest.approx(ours.hard_body_radius_m)
    assert theirs.hard_body_radius_source == ours.hard_body_radius_source
    for one, other in zip(before.objects, after.objects, strict=True):
        np.testing.assert_array_equal(one.position_km, other.position_km)
        np.testing.assert_allclose(one.covariance_rtn, other.covariance_rtn, rtol=1e-12)
    if target != "cdm-json":
        ccsds_ndm.from_str(converted(text.encode(), "cdm-kvn", target).data.decode())


def test_every_format_that_is_read_record_by_record_has_such_a_test() -> None:
    tested = {"omm-csv", "oem-kvn", "tdm-kvn", "cdm-kvn", "opm-kvn"}
    covered = {target for name in tested for target in targets_of(name)}
    messages = {"elements", "ephemerides", "tracking", "messages"}
    written = {known.name for known in FORMATS if isinstance(known, RecordFormat) and known.write}
    assert {known.name for known in FORMATS if known.zone in messages} & written == covered


def test_a_summary_of_space_track_is_read_and_never_written_as_a_whole_message() -> None:
    record = next(iter(split_records(b'[{"CDM_ID":"1","TCA":"2024-05-03T00:00:00","MIN_RNG":"10","PC":null,'
                                     b'"SAT_1_ID":"1","SAT_2_ID":"2"}]', "cdm-json")))  # fmt: skip
    summary = read_cdm_json(record)
    for name in ("cdm-kvn", "cdm-xml", "cdm-json"):
        with pytest.raises(ValueError, match="summary without states"):
            written([summary], name)
