"""The whole chain, from files in the landing zones to alerts at the subscriber, on real orbits."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.cli.alert.message import alert_message
from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.formats.framing.container import pack_records
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.unconsumed import unconsumed_commits
from sda_platform.observability.trace import trace_alert
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import SCHEDULED_JOBS
from sda_platform.recovery.verification import current_keys
from sda_platform.registry import TABLES
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform_tests.support.delta_tables import lose_rows
from sda_platform_tests.support.platform_run import Platform, correctness, written
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.segments import (
    START_NS,
    after,
    catalogue_of,
    described,
    land,
    put,
    radar_payloads,
)
from sda_platform_tests.support.simulated_chain import FLEET, catalogue, events, simulated, tracks

ALL = [
    RAW_RECORDS, OBSERVATIONS, DEAD_LETTERS, ELEMENT_SETS, ORBITAL_CATALOG, FUSED_TRACKS, CONJUNCTION_CANDIDATES,
    CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS, ALERT_DELIVERIES, RECEIVED_CDMS,
]  # fmt: skip


def with_catalogue(platform: Platform) -> Platform:
    assert land(platform.zone("elements"), "catalogue.csv", catalogue())
    platform.run("catalog_to_alerts")
    return platform


def standing_assessments(platform: Platform) -> list[dict[str, Any]]:
    log = platform.lake.log(CONJUNCTION_ASSESSMENTS)
    return list(current_keys(log, ["collision_probability"]).to_pylist())


def unread(platform: Platform) -> set[str]:
    """The tables with commits that wait for one of their readers, a table without any commit among these."""
    heads = {table.name: platform.lake.head(table) for table in TABLES}
    scheduled = [table for job in SCHEDULED_JOBS for table in tables_of(job)]
    readers = [table for table in TABLES if table not in scheduled]
    return {name for table in readers for name in unconsumed_commits(table, heads)}


def test_from_real_orbits_to_delivered_alerts__spec_115(platform: Platform) -> None:
    with_catalogue(platform)
    assert unread(platform) == set(), "a catalogue alone gives no other job work"
    candidates = platform.rows(CONJUNCTION_CANDIDATES)
    found = sorted(
        (
            min(r["norad_id_1"], r["norad_id_2"]),
            max(r["norad_id_1"], r["norad_id_2"]),
            r["tca_time_ns"],
            r["miss_distance_km"],
        )
        for r in candidates.to_pylist()
    )
    assert [f[:2] for f in found] == [e[:2] for e in sorted(events())]
    assert all(
        abs(f[2] - e[2]) < 10_000_000 and abs(f[3] - e[3]) < 0.01 for f, e in zip(found, sorted(events()), strict=True)
    )

    _older_sets_move_no_alert(platform)

    platform.land(simulated())
    platform.at(after(85))
    result = platform.run("observations_to_alerts")
    assert all(correctness(result).values()), correctness(result)

    faults = Counter(fault for s in simulated() for fault in s.truth.column("fault").to_pylist())
    assert platform.rows(RAW_RECORDS, "feed").num_rows == sum(s.meta.records for s in simulated())
    assert platform.rows(DEAD_LETTERS, "stage").num_rows == faults["corrupt"]
    assert platform.rows(OBSERVATIONS, "observation_id").num_rows == faults["none"]
    assert set(tracks(platform).column("norad_id").to_pylist()) <= set(FLEET)
    assert tracks(platform).num_rows > 40

    sources = platform.rows(CONJUNCTION_ASSESSMENTS, "state_source_1", "op").to_pylist()
    assert {"state_source_1": "fused_track", "op": "insert"} in sources, "a confirmed track replaced an element set"
    alerts = current_keys(platform.lake.log(CONJUNCTION_ALERTS)).column("event_id").to_pylist()
    assert alerts
    message = read_cdm(alert_message(platform.lake, alerts[0], "xml"))
    (assessed,) = [r for r in standing_assessments(platform) if r["event_id"] == alerts[0]]
    assert message_risk(message).pc == pytest.approx(assessed["collision_probability"], rel=1e-6)
    assert sorted(entry.alert_id for entry in platform.subscriber.held() if entry.op == "insert") == sorted(alerts)
    assert (
        platform.rows(ALERT_DELIVERIES, "alert_id").num_rows == platform.rows(CONJUNCTION_ALERTS, "event_id").num_rows
    )

    _others_speak(platform, alerts[0])

    before, receipts = platform.versions(ALL), platform.subscriber.receipts()
    assert unread(platform) == set()
    again = platform.run("observations_to_alerts")
    assert set(written(again).values()) == {0}
    assert set(written(platform.run("catalog_to_alerts")).values()) == {0}
    assert platform.versions(ALL) == before, "a job without work commits nothing"
    assert platform.subscriber.receipts() == receipts

    _a_second_delivery_changes_no_row_and_is_counted(platform)

    lose_rows(platform.lake, OBSERVATIONS, "record_number = 5")
    red = platform.run("observations_to_alerts", must_succeed=False)
    assert correctness(red)["observations:exactly_once"] is False
    assert not red.success, "a table that lost rows does not flow on"


def _older_sets_move_no_alert(platform: Platform) -> None:
    """A catalogue that lands again with older sets."""
    held = current_keys(platform.lake.log(CONJUNCTION_CANDIDATES))
    older = catalogue().replace(b"2024-11-01", b"2024-10-30").replace(b"2024-10-31", b"2024-10-29")
    assert land(platform.zone("elements"), "older.csv", older)
    result = platform.run("catalog_to_alerts")
    assert written(result)["orbital_catalog"] == 0
    assert written(result)["conjunction_candidates"] == 0
    assert all(correctness(result).values()), correctness(result)
    again = current_keys(platform.lake.log(CONJUNCTION_CANDIDATES))
    assert pc.all(pc.is_in(again.column("event_id"), held.column("event_id"))).as_py()


def _a_second_delivery_changes_no_row_and_is_counted(platform: Platform) -> None:
    """The same segments again, under other names, after everything was consumed."""
    segments = [s for s in simulated() if s.feed == "isl"][:2]
    before = {table.name: platform.lake.log(table).row_count() for table in ALL}
    for n, segment in enumerate(segments):
        zone = platform.zone(segment.feed)
        put(zone, f"copy {n}", segment.data)
        put(zone, f"copy {n}.meta.json", segment.meta.to_json().encode())
    assert set(written(platform.run("observations_to_alerts")).values()) == {0}
    assert {table.name: platform.lake.log(table).row_count() for table in ALL} == before
    commit = platform.lake.head(RAW_RECORDS).commit
    assert commit is not None
    assert commit.manifest.counts["duplicate_segments"] == len(segments)
    assert platform.zone("isl").pending_names() == []


def _others_speak(platform: Platform, alert: str) -> None:
    """One received message agrees with one of our events, and another has no event: both are listed."""
    same = alert_message(platform.lake, alert, "kvn").replace(OWN_ORIGINATOR.encode(), b"18 SDS")
    unknown = Told(pair=(FLEET[0], 99_999), stated=2e-4)
    assert land(platform.zone("messages"), "theirs.kvn", same + messages_of([unknown]))
    steps = ["received_cdms", "dead_letters", "conjunction_assessments", "conjunction_alerts", "alert_deliveries"]
    result = platform.run("catalog_to_alerts", only=steps)
    assert written(result)["received_cdms"] == 2
    (first, _) = sorted(platform.rows(RECEIVED_CDMS).to_pylist(), key=lambda row: row["record_number"])
    assert first["recomputed_probability"] == pytest.approx(first["stated_probability"], rel=1e-6)
    columns = ["rule", "norad_id_2", "collision_probability"]
    told = current_keys(platform.lake.log(CONJUNCTION_ALERTS), columns).to_pylist()
    theirs = [(row["rule"], row["collision_probability"]) for row in told if row["norad_id_2"] == 99_999]
    assert theirs == [("stated_by_other", None)]
    story = trace_alert(platform.lake, alert)
    assert [row["message_id"] for row in story.messages] == [first["message_id"]]
    outcome = correctness(result)
    assert outcome.pop("conjunction_assessments:others_agree") is False, "they know of a danger that we do not"
    assert all(outcome.values()), outcome


def test_any_order_and_repetition_of_landings_ends_in_the_same_tracks__DP3_Q1_E11(
    platforms: Callable[[str], Platform],
) -> None:
    """Late, repeated and reordered within the allowed lateness: the tracks are equal, bit by bit."""
    segments = list(simulated())
    draw = np.random.default_rng(42)
    # What was sent after 25 and 30 s comes behind what was sent after 40 s, when its window is still open.
    early, overtaken, late = [*segments[:8], *segments[12:16]], segments[8:12], segments[16:]
    batches = [early, [*late, *overtaken, *early[3:6]]]
    found = {
        "at once": _landed_in(platforms("at once"), [segments]),
        "shuffled": _landed_in(
            platforms("shuffled"), [[batch[n] for n in draw.permutation(len(batch))] for batch in batches]
        ),
    }
    first, second = found.values()
    assert first.num_rows == second.num_rows > 0
    assert first.equals(second)


def _landed_in(platform: Platform, batches: Sequence[Sequence[SimulatedSegment]]) -> pa.Table:
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(FLEET))
    platform.run("catalog_to_alerts", only=["element_sets", "orbital_catalog"])
    platform.at(after(77))
    for batch in batches:
        platform.land(batch)
        platform.run("observations_to_alerts", only=["raw_records", "observations", "fused_tracks"])
    return tracks(platform)


def test_bad_input_is_reported_with_file_record_and_reason_and_nothing_else_is_lost(platform: Platform) -> None:
    good = radar_payloads(4)
    received = [after(1)] * 6
    mixed = pack_records(
        [good[0], b"short", good[1], b"", good[2], good[3][:16] + b"\xff" * 8 + good[3][24:]], received
    )
    optical = b'{"obs_id": "o1"\n' + _optical() + b"\n" + _optical(dec_rad="9.0") + b"\n"
    lines = catalogue_of([25544, 20580]).splitlines()
    refused = lines[1].split(b",")
    refused[3:5], refused[8] = [b"16.9", b"0.9"], b"0.0"  # a perigee inside the Earth, and the object is there
    radar, elements = platform.zone("radar"), platform.zone("elements")
    whole = described(mixed)
    land(radar, "mixed", mixed)
    radar.seal("truncated", mixed[:-7], replace(whole, sealed_time_ns=after(2)))
    radar.seal("altered", mixed[:-1] + b"x", replace(whole, sealed_time_ns=after(2)))
    radar.seal("another feed", pack_records([b"?"], [1]), described(pack_records([b"?"], [1]), "isl"))
    put(radar, "bad metadata", b"data")
    put(radar, "bad metadata.meta.json", b"{")
    put(radar, "orphan", b"data without metadata")
    land(platform.zone("optical"), "night", optical)
    theirs = [Told(tca_ns=after(2)), Told(stated=7.0)]
    land(platform.zone("messages"), "theirs.kvn", messages_of(theirs) + b"CCSDS_CDM_VERS = 1.0\nORIGINATOR = ?\n")
    land(elements, "sets", b"\n".join([*lines, b",".join(refused), b"not,a,set"]) + b"\n")
    (platform.home / "landing" / "lidar" / "pending").mkdir(parents=True)
    platform.at(after(5))

    hot, catalog = platform.run("observations_to_alerts"), platform.run("catalog_to_alerts")

    told: dict[str, str] = {}
    for letter in platform.rows(DEAD_LETTERS).to_pylist():
        told[f"{letter['segment_name']} {letter['record_number']} {letter['error_kind']}"] = letter["error"]
    assert set(told) == {
        "mixed 1 bad_length", "mixed 3 bad_length", "mixed 5 out_of_range", "truncated -1 bad_segment",
        "altered -1 bad_segment", "another feed -1 bad_segment", "bad metadata -1 bad_segment",
        "orphan -1 bad_segment", "night 0 bad_json", "night 2 out_of_range",
        "sets 2 propagation_refused", "sets 3 bad_length", "theirs.kvn 1 out_of_range", "theirs.kvn 2 missing_field",
    }  # fmt: skip
    assert all(name.split(" ")[0] in error for name, error in told.items())
    assert told["mixed 1 bad_length"] == "radar/mixed record 1: radar frame has 5 bytes, must have 60"
    assert told["sets 2 propagation_refused"].startswith("elements/sets record 2: ")
    assert platform.rows(OBSERVATIONS, "observation_id").num_rows == 4, "three frames and one telescope record"
    assert sorted(platform.rows(ORBITAL_CATALOG, "norad_id").column("norad_id").to_pylist()) == [20580, 25544]

    for result in (hot, catalog):
        outcome = correctness(result)
        orphans = outcome.pop("raw_records:no_orphans", None)
        assert all(outcome.values()), outcome
        assert orphans is not True
    assert radar.pending_files() == []
    assert _orphans(hot) == ["unknown feed 'lidar'"]


def _optical(**changed: str) -> bytes:
    fields = {
        "obs_id": '"o2"',
        "timestamp_ns": str(START_NS),
        "ra_rad": "1.0",
        "dec_rad": "0.5",
        "sigma_arcsec": "1.0",
        "site_id": '"maui"',
    }
    return ("{" + ",".join(f'"{name}":{value}' for name, value in {**fields, **changed}.items()) + "}").encode()


def _orphans(result: Any) -> list[str]:
    (data,) = [
        e.event_specific_data
        for e in result.all_events
        if e.event_type_value == "ASSET_CHECK_EVALUATION" and e.event_specific_data.check_name == "no_orphans"
    ]
    return [line.partition(": ")[2].partition(";")[0] for line in data.metadata["files"].value]


def test_a_subscriber_that_is_away_holds_up_nothing_but_its_alerts(platform: Platform) -> None:
    platform.subscriber.path.mkdir()  # no database can be opened there
    assert land(platform.zone("elements"), "catalogue.csv", catalogue())
    away = platform.run("catalog_to_alerts", must_succeed=False)
    assert [e.step_key for e in away.all_events if e.is_step_failure] == ["alert_deliveries"]
    run = platform.instance.get_run_by_id(away.run_id)
    assert run is not None
    assert run.tags["sda/failure"] == "transient"
    assert "sqlite:subscriber.sqlite" in run.tags["sda/failure_reason"]
    waiting = platform.rows(CONJUNCTION_ALERTS, "event_id").num_rows
    assert waiting > 0

    platform.land(simulated())
    platform.at(after(85))
    platform.run("observations_to_alerts", must_succeed=False)
    sound = sum(fault == "none" for s in simulated() for fault in s.truth.column("fault").to_pylist())
    assert platform.rows(OBSERVATIONS, "observation_id").num_rows == sound
    assert platform.rows(FUSED_TRACKS, "fit_id").num_rows > 0
    assert platform.rows(ALERT_DELIVERIES, "alert_id").num_rows == 0

    platform.subscriber.path.rmdir()
    back = platform.run("alerts_to_subscriber")
    assert written(back) == {"alert_deliveries": platform.rows(CONJUNCTION_ALERTS, "event_id").num_rows}
    assert correctness(back)["alert_deliveries:subscriber_agrees"]
    assert len(platform.subscriber.receipts()) == written(back)["alert_deliveries"] >= waiting
