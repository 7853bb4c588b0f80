"""What others say of an encounter: from their messages to rows, to the event of ours that it is, to a disagreement."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.conjunction.cdm_comparison import comparisons_with, newest, open_comparisons
from sda_platform.conjunction.cdm_decoding import decode, decoder
from sda_platform.conjunction.checks import others_agree
from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS, RECEIVED_CDMS, SAME_EVENT_NS
from sda_platform.formats.cdm import Encoding
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.segments import START_NS, after, described

TCA_NS = after(7200)


def rows(*messages: Told | bytes, encoding: Encoding = "kvn") -> list[dict[str, Any]]:
    """What their segments become, one row a message."""
    found = []
    for number, message in enumerate(messages):
        data = messages_of([message], encoding) if isinstance(message, Told) else message
        meta = described(data, "messages", segment_format=f"cdm-{encoding}")
        for row in decode(data, meta).to_pylist():
            found.append({"segment_sha256": f"s{number}", "received_time_ns": START_NS, "error_kind": None, **row})
    return found


def event(event_id: str, pc: float, *, pair: tuple[int, int] = (25544, 270387), tca_ns: int = TCA_NS) -> dict[str, Any]:
    """A standing assessment of ours."""
    ids = {"norad_id_1": pair[0], "norad_id_2": pair[1]}
    return {
        "event_id": event_id,
        "sequence": 0,
        "op": "insert",
        "tca_time_ns": tca_ns,
        "collision_probability": pc,
        **ids,
    }


def told(lake: Lake, *messages: Told, events: list[dict[str, Any]]) -> list[str | None]:
    commit(lake, RECEIVED_CDMS, rows(*messages))
    commit(lake, CONJUNCTION_ASSESSMENTS, events)
    return [opinion.disagreement for opinion in open_comparisons(lake, START_NS)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path / "lake")


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_a_message_becomes_a_row_with_what_it_states_and_the_risk_of_its_states(encoding: Encoding) -> None:
    message = Told(stated=3e-5, created_ns=after(60))
    (row,) = rows(message, encoding=encoding)
    risk = message_risk(message.cdm())
    assert row["error"] is None
    assert (row["originator"], row["message_id"]) == ("18 SDS", f"25544-270387-{after(60)}")
    assert (row["norad_id_1"], row["norad_id_2"], row["object_name_2"]) == (25544, 270387, "OBJECT 2")
    assert (row["created_time_ns"], row["tca_time_ns"]) == (after(60), TCA_NS)
    assert (row["miss_distance_km"], row["stated_probability"], row["risk"]) == (0.2, 3e-5, "yellow")
    assert row["recomputed_probability"] == pytest.approx(risk.pc, rel=1e-9)
    assert (row["is_2d_valid"], row["hard_body_radius_m"]) == (True, 10.0)
    assert row["state_2"][:3] == [7000.2, 0.0, 0.0]
    assert covariance_from_lower([row["covariance_1"]])[0] == pytest.approx(message.cdm().objects[0].covariance_rtn)


def test_without_a_stated_probability_a_message_has_the_colour_of_the_one_we_find() -> None:
    (row,) = rows(Told(sigma_km=0.1))
    assert row["stated_probability"] is None
    assert (row["risk"], row["recomputed_probability"] >= 1e-4) == ("red", True)


def test_each_bad_message_of_a_file_is_a_row_that_says_why_and_harms_no_other() -> None:
    good = messages_of([Told()])
    broken = [
        (good.replace(b"TCA ", b"ATC "), "bad_field", "line 6: ATC is no keyword of the message"),
        (good.rpartition(b"CNDOT_NDOT")[0], "missing_field", "CNDOT_NDOT of OBJECT2 is missing"),
        (messages_of([Told(stated=1.5)]), "out_of_range", "COLLISION_PROBABILITY is 1.5, must be from 0 to 1"),
        (messages_of([Told(miss_km=-0.2)]), "out_of_range", "MISS_DISTANCE is -200 m, must not be negative"),
        (good.replace(b"= 2024-11-01T00", b"= 2024-13-01T00"), "bad_field", "CREATION_DATE is '2024-13"),
        (good.replace(b"= 2024-11-01T00", b"= 9999-11-01T00"), "out_of_range", "CREATION_DATE is '9999-11-01T00"),
        (b"CCSDS_OMM_VERS = 2.0\n", "unknown_format", "begins with CCSDS_OMM_VERS, not CCSDS_CDM_VERS"),
    ]
    found = rows(b"".join([*(data for data, _, _ in broken), good]))
    for row, (_, kind, reason) in zip(found, broken, strict=False):
        assert row["error_kind"] == kind
        assert reason in row["error"]
    assert [row["record_number"] for row in found if row["error_kind"] is None] == [len(broken)]


@pytest.mark.parametrize("designator", ["1998-067A", "", "²", "0", "12345678901"])
def test_an_object_that_is_designated_otherwise_has_no_number(designator: str) -> None:
    (row,) = rows(Told(pair=(designator, 270387)))
    assert (row["norad_id_1"], row["norad_id_2"], row["error"]) == (None, 270387, None)


@pytest.mark.parametrize(
    ("designator", "number"),
    [("1998-067A", 25544), ("98067A", 25544), ("1998-067 a", 25544), ("2001-001A", None), ("2020-001B", None)],
)
def test_an_object_is_found_by_its_international_designator__41(designator: str, number: int | None) -> None:
    known = {"1998-067A": [25544], "2020-001B": [7, 8]}
    data = messages_of([Told(pair=(designator, 270387))])
    meta = described(data, "messages", segment_format="cdm-kvn")
    (row,) = decoder(lambda name: known.get(name, ()))(data, meta).to_pylist()
    assert (row["norad_id_1"], row["object_designator_1"], row["error"]) == (number, designator, None)


@pytest.mark.parametrize(
    ("pair", "apart_ns", "is_same"),
    [
        ((25544, 270387), 0, True),
        ((270387, 25544), SAME_EVENT_NS - 1, True),
        ((25544, 270387), SAME_EVENT_NS, False),
        ((25544, 270388), 0, False),
    ],
)
def test_a_message_is_about_an_event_of_the_same_pair_within_the_tolerance_of_event_identity(
    lake: Lake, pair: tuple[int, int], apart_ns: int, is_same: bool
) -> None:
    commit(lake, RECEIVED_CDMS, rows(Told(pair=pair, tca_ns=TCA_NS + apart_ns)))
    assert bool(comparisons_with(lake, event("e", 1e-5))) == is_same


def test_the_messages_on_an_event_come_in_the_order_of_their_creation(lake: Lake) -> None:
    commit(lake, RECEIVED_CDMS, rows(*(Told(created_ns=after(s)) for s in (30, 10, 20))))
    found = [row["created_time_ns"] for row in comparisons_with(lake, event("e", 1e-5))]
    assert found == [after(10), after(20), after(30)]


def test_of_each_originator_the_last_message_on_an_encounter_counts() -> None:
    early, late = Told(created_ns=after(10)), Told(created_ns=after(20), tca_ns=TCA_NS + 10**9)
    other, another = Told(originator="EUSST"), Told(tca_ns=TCA_NS + 2 * SAME_EVENT_NS)
    unnumbered = [Told(pair=("A", "B")), Told(pair=("A", "C"))]
    found = newest(rows(late, early, other, another, *unnumbered))
    kept = {(row["originator"], row["object_designator_2"], row["created_time_ns"]) for row in found}
    assert kept == {
        ("18 SDS", "270387", after(20)), ("EUSST", "270387", START_NS), ("18 SDS", "270387", START_NS),
        ("18 SDS", "B", START_NS), ("18 SDS", "C", START_NS),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours", "differs"),
    [
        (3e-5, 1e-5, False),
        (3e-5, 2e-6, True),
        (3e-7, 4e-6, True),
        (3e-5, 0.0, True),
        (9e-8, 1e-12, False),
        (2e-7, 3e-8, False),
    ],
)
def test_probabilities_that_differ_tenfold_are_reported_where_one_of_them_is_a_risk(
    lake: Lake, theirs: float, ours: float, differs: bool
) -> None:
    (line,) = told(lake, Told(stated=theirs), events=[event("event-of-ours", ours)])
    assert (line is not None) == differs
    if line:
        assert line == (
            f"18 SDS reports Pc {theirs:.2e} for OBJECT 1 (25544) – OBJECT 2 (270387) at 2024-11-01T02:00:00.000Z; "
            f"our Pc is {ours:.2e} (event event-of)"
        )


@pytest.mark.parametrize(("stated", "is_told"), [(1e-7, True), (9e-8, False), (None, True)])
def test_a_risk_that_we_do_not_have_is_reported(lake: Lake, stated: float | None, is_told: bool) -> None:
    """Where nothing is stated, the message's own covariances tell."""
    elsewhere = [event("a", 1e-3, pair=(25544, 5)), event("b", 1e-3, tca_ns=TCA_NS + SAME_EVENT_NS)]
    (line,) = told(lake, Told(stated=stated), events=elsewhere)
    assert (line or "").endswith("we have no such event") == is_told


def test_what_is_past_or_cannot_be_used_or_was_withdrawn_by_us_is_reported_accordingly(lake: Lake) -> None:
    withdrawn = [event("a", 1e-3), {**event("a", 1e-3), "op": "retract"}]
    commit(lake, RECEIVED_CDMS, rows(b"CCSDS_CDM_VERS = 1.0\n"))
    (line,) = told(lake, Told(stated=1e-3), Told(stated=1e-3, tca_ns=START_NS), events=withdrawn)
    assert (line or "").endswith("we have no such event")


def test_the_check_of_others_is_green_without_messages_and_yellow_when_one_knows_of_a_danger(tmp_path: Path) -> None:
    resource = LakeResource(uri=str(tmp_path / "lake"), home=str(tmp_path), spark=SparkResource(remote="local"))
    lake = lake_at(tmp_path / "lake")
    lake.clock.save(tmp_path)
    assert outcome(resource).passed
    commit(lake, RECEIVED_CDMS, rows(Told(stated=3e-5)))
    commit(lake, CONJUNCTION_ASSESSMENTS, [event("e", 2e-5)])
    assert outcome(resource).passed
    commit(lake, RECEIVED_CDMS, rows(Told(stated=2e-3, created_ns=after(9))))
    result = outcome(resource)
    assert not result.passed
    assert "18 SDS reports Pc 2.00e-03 for OBJECT 1 (25544)" in str(result.description)
    assert result.metadata["external_reports"].value == 1


def outcome(resource: LakeResource) -> dg.AssetCheckResult:
    found = others_agree(resource)
    assert isinstance(found, dg.AssetCheckResult)
    return found
