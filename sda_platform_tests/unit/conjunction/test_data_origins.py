"""Each alert says whose data it rests on: the kind of both states, sensors or originators, and who sent the records."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.cli.alert.message import alert_message
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.conjunction.data_origins import DataOrigin, data_origins, origins_of_events
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, canonical
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform_tests.support.delta_tables import commit, lake_at, row
from sda_platform_tests.support.segments import START_NS, after

EVENT = "3f2a-event"
PAIR = {"event_id": EVENT, "norad_id_1": 25544, "norad_id_2": 5, "tca_time_ns": after(3600), "risk": "red"}
SHA = "a" * 64


def landed(number: int, source: str | None = None, **facts: Any) -> dict[str, Any]:
    return {"segment_sha256": SHA, "segment_name": "a.bin", "record_number": number, "source_name": source, **facts}


def from_record(number: int, **facts: Any) -> dict[str, Any]:
    return {name: value for name, value in landed(number, **facts).items() if name != "source_name"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """The primary's state is of its track, by a radar and a telescope; the secondary's of an element set."""
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")
    commit(lake, ELEMENT_SETS, [landed(7, "celestrak", norad_id=5)])
    orbit = {"mean_motion_rev_per_day": 10.8, "eccentricity": 0.18, "inclination_deg": 34.2}
    commit(
        lake,
        ORBITAL_CATALOG,
        [from_record(7, norad_id=5, originator="18 SPCS", owner="AURORA", epoch_time_ns=START_NS, **orbit)],
    )
    commit(lake, RAW_RECORDS, [landed(n, source) for n, source in enumerate(("radars", "teide", "radars"))])
    sensors = ("radar-31", "optical-teide", "radar-99")
    seen = [from_record(n, observation_id=f"o{n}", source_id=sensor, sensor_time_ns=START_NS + n)
            for n, sensor in enumerate(sensors)]  # fmt: skip
    commit(lake, OBSERVATIONS, seen)
    window = {"window_start_ns": START_NS, "epoch_time_ns": START_NS + 15 * 10**9, "observation_ids": ["o0", "o1"]}
    commit(lake, FUSED_TRACKS, [{**window, "fit_id": "w1", "norad_id": 25544, "op": "insert", "sequence": 0}])
    commit(lake, EPHEMERIDES, [landed(3, "operator-upload", norad_id=25544, originator="NASA")])
    covariance = [1e-4 if n in {0, 2, 5, 9, 14, 20} else 0.0 for n in range(21)]
    zero = dict.fromkeys((c.name for c in CONJUNCTION_ASSESSMENTS.columns if "relative_velocity_" in c.name), 1.0)
    facts = {
        **zero, "object_type_1": "payload", "object_type_2": "debris", "probability_method": "FOSTER-1992",
        "state_1": [7000.0, 0, 0, 0, 7.5, 0], "state_2": [7000.1, 0, 0, 0, 0, 7.5], "covariance_1": covariance,
        "covariance_2": covariance, "state_source_1": "fused_track", "track_id_1": "w1",
        "state_source_2": "element_set", "object_name_1": "ISS", "object_name_2": "VANGUARD 1",
    }  # fmt: skip
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**PAIR, **facts, "sequence": 0, "op": "insert"}])
    commit(lake, CONJUNCTION_ALERTS, [{**PAIR, "sequence": 0, "op": "insert", "status": "open"}])
    body = canonical({**row(CONJUNCTION_ALERTS, **PAIR, status="open"), "object_name_1": "ISS"})
    SqliteSubscriber(tmp_path / "subscriber.sqlite").apply("b", [AlertEntry(EVENT, 0, "insert", body)])
    return lake


TRACK = "optical-teide, radar-31 by radars, teide"
ELEMENTS = "18 SPCS owned by AURORA by celestrak"


def test_a_track_has_its_sensors_and_an_element_set_its_originator_and_both_their_senders(lake: Lake) -> None:
    found = origins_of_events(lake, [EVENT, "unknown"])
    assert {key: (each.kind, each.data, each.time_ns) for key, each in found.items()} == {
        (EVENT, 1): ("fused_track", TRACK, START_NS + 15 * 10**9),
        (EVENT, 2): ("element_set", ELEMENTS, START_NS),
    }


def test_an_ephemeris_has_its_operator_and_our_own_states_nobody_else(lake: Lake) -> None:
    known = {**PAIR, "track_id_1": None, "track_id_2": None, "state_source_1": "operator_ephemeris",
             "ephemeris_id_1": "a.bin:3", "state_source_2": "refined_ephemeris", "ephemeris_id_2": "own"}  # fmt: skip
    made_ns = lake.log(EPHEMERIDES).rows(["received_time_ns"]).column(0)[0].as_py()
    assert data_origins(lake, [known]) == {
        (EVENT, 1): DataOrigin("operator_ephemeris", ("NASA",), ("operator-upload",), made_ns),
        (EVENT, 2): DataOrigin("refined_ephemeris"),
    }


def test_list_page_message_and_service_show_it(lake: Lake, tmp_path: Path) -> None:
    def sda(*arguments: str) -> str:
        answer = CliRunner().invoke(main, ["--home", str(tmp_path), *arguments])
        assert answer.exit_code == 0, answer.output
        return answer.stdout

    expected = {"state_source_1": "fused_track", "data_of_1": TRACK, "state_source_2": "element_set",
                "data_of_2": ELEMENTS, "owner_1": None, "owner_2": "AURORA", "source_name_1": "radars, teide",
                "source_name_2": "celestrak"}  # fmt: skip
    (listed,) = json.loads(sda("alert", "list", "--json"))
    assert {name: listed[name] for name in expected} == expected
    (served,) = LakeSource(lake, str(tmp_path / "landing")).alerts()
    assert {name: served[name] for name in expected} == expected
    table = "".join(sda("alert", "list").split())
    assert f"ISS · track of {TRACK}".replace(" ", "") in table
    sda("alert", "report", "3f2a", "--out", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert f'<th scope="row">data of</th><td>{TRACK}</td><td>{ELEMENTS}</td>' in page
    message = alert_message(lake, "3f2a", "kvn").decode()
    assert f"COMMENT state and covariance from fused track, data of {TRACK}" in message
    assert f"COMMENT state and covariance from element set, data of {ELEMENTS}" in message
    assert f"(state from its track, data of {TRACK})" in " ".join(sda("alert", "show", "3f2a").split())


@pytest.mark.parametrize(
    ("makers", "senders", "words"),
    [
        (("radar-5",), ("radars",), "track of radar-5 by radars"),
        ((), ("radars",), "track by radars"),
        (("radar-5",), (), "track of radar-5"),
        ((), (), "track"),
    ],
)
def test_an_origin_reads_as_words_whatever_is_known(
    makers: tuple[str, ...], senders: tuple[str, ...], words: str
) -> None:
    assert str(DataOrigin("fused_track", makers, senders)) == words
