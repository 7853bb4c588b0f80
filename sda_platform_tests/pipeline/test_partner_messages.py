"""From their landing zones to tables: ephemerides, tracking data and telemetry of partners, and sampled metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode
from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.cdm import read_cdm_record
from sda_platform.formats.cutting import split_records
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.metric_values import MetricValue, encode_metric_values
from sda_platform.formats.telemetry import INVALID_FLAG
from sda_platform.ingest.tables import OBSERVATIONS, TELEMETRY_FRAMES
from sda_platform.metric_history.tables import PIPELINE_METRICS
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.collectors import telemetry
from sda_platform_tests.support.ephemerides_of_operators import oem_of, oem_through
from sda_platform_tests.support.messages import MESSAGES
from sda_platform_tests.support.platform_run import Platform, correctness, written
from sda_platform_tests.support.segments import after, catalogue_ids, catalogue_of, described, land
from sda_platform_tests.unit.serving.client import Client

pytestmark = pytest.mark.pipeline
KVN = {"content-type": "application/x-ccsds-kvn"}
CHAIN = ["element_sets", "orbital_catalog", "ephemerides", "conjunction_candidates", "conjunction_assessments"]


def test_ephemerides_and_tracking_data_land_and_what_is_unusable_becomes_dead_letters(platform: Platform) -> None:
    ephemerides = oem_of(25544) + oem_of(270387) + oem_of(44713, broken=True)
    tracking = MESSAGES["tdm_e22.kvn"] + b"\n" + MESSAGES["tdm_e20.kvn"]
    for feed, data, name in (("ephemerides", ephemerides, "oem-kvn"), ("tracking", tracking, "tdm-kvn")):
        meta = described(data, feed, segment_format=name)
        assert platform.zone(feed).seal(f"{feed}.kvn", data, meta)

    landed = platform.run("catalog_to_alerts", only=["ephemerides", "dead_letters"])
    assert written(landed)["ephemerides"] == 3
    assert all(correctness(landed).values())
    rows = platform.rows(EPHEMERIDES).to_pylist()
    assert {row["norad_id"]: len(row["state_time_ns"] or []) for row in rows} == {25544: 5, 270387: 5, None: 0}

    observed = platform.run("observations_to_alerts", only=["raw_records", "observations", "dead_letters"])
    assert (written(observed)["raw_records"], written(observed)["observations"]) == (19, 3)
    assert all(correctness(observed).values())
    assert set(platform.rows(OBSERVATIONS, "source_id").column("source_id").to_pylist()) == {
        "optical-smartnet-01-a-suth"
    }

    data = pack_records([*telemetry(3), *telemetry(1, first=3, flags=INVALID_FLAG)], [after(1)] * 4)
    assert platform.zone("telemetry").seal("frames", data, described(data, "telemetry"))
    received = platform.run("telemetry_to_frames")
    assert written(received) == {"telemetry_frames": 4}
    assert all(correctness(received).values())
    assert platform.rows(TELEMETRY_FRAMES, "frame_sequence").column("frame_sequence").to_pylist() == [0, 1, 2, None]

    value = MetricValue("watchdog", "commits_total", "commits_total", {"table": "tracks"}, 3.0, after(1))
    sampled = encode_metric_values([value])
    assert platform.zone("metrics").seal("metrics", sampled, described(sampled, "metrics"))
    kept = platform.run("platform_metrics")
    assert written(kept) == {"pipeline_metrics": 1}
    assert all(correctness(kept).values())
    assert platform.rows(PIPELINE_METRICS, "labels").column("labels").to_pylist() == ['{"table": "tracks"}']

    letters = platform.rows(DEAD_LETTERS, "error").column("error").to_pylist()
    assert len(letters) == 17
    assert sum("Y_DOT is 'nonsense', must be a number" in letter for letter in letters) == 1
    assert sum("an observation needs ANGLE_1 and ANGLE_2" in letter for letter in letters) == 16


def test_an_operator_submits_ephemerides_and_receives_cdms_of_catalogue_and_other_ephemerides(
    platform: Platform,
) -> None:
    """Two plans that no element set shows: one meets an object of the catalogue, and then the other plan."""
    known = catalogue_ids()[:40]
    met, ours, theirs = known[10], known[20], known[30]
    assert not {ours, theirs} & {member.norad_id for member in protected_fleet()}
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(known), seconds=1.0)
    platform.at(after(10.0))
    assert written(platform.run("catalog_to_alerts", only=CHAIN))["conjunction_candidates"] == 0

    span = {"begin_ns": after(60), "end_ns": after(6600)}
    first, second = after(2400), after(4800)
    place, speed = state_of(platform, met, first)
    plan = oem_through(ours, first, place * (1 + 0.1 / np.linalg.norm(place)), -speed, **span)
    row = decode(plan, described(plan, "ephemerides", segment_format="oem-kvn")).to_pylist()[0]
    (state,), _ = Ephemeris.from_row(row).at(np.array([second]))
    other = oem_through(theirs, second, state[:3] * (1 + 0.05 / np.linalg.norm(state[:3])), -state[3:], **span)

    with endpoint_of(platform) as client:
        told = [client.post("/ephemerides", content=each, headers=KVN) for each in (plan, other)]
        assert [answer.status_code for answer in told] == [201, 201]
        mine, others = (answer.json()["status"] for answer in told)
        assert client.get(mine).json()["state"] == "received"
        result = platform.run("catalog_to_alerts", only=CHAIN)
        assert all(correctness(result).values())

        found = client.get(mine).json()
        assert (found["state"], found["screened_until_utc"]) == ("screened", "2024-11-01T02:00:10.000Z")
        meetings = {({each[f"norad_id_{n}"] for n in (1, 2)} - {ours}).pop(): each for each in found["conjunctions"]}
        assert set(meetings) == {met, theirs}
        for number, time_ns, miss_km in ((met, first, 0.1), (theirs, second, 0.05)):
            assert abs(meetings[number]["tca_time_ns"] - time_ns) < 10**7
            assert meetings[number]["miss_distance_km"] == pytest.approx(miss_km, abs=1e-3)
        assert {meetings[theirs][f"state_source_{n}"] for n in (1, 2)} == {"operator_ephemeris"}
        assert [each["event_id"] for each in client.get(others).json()["conjunctions"]] == [
            meetings[theirs]["event_id"]
        ]
        messages = client.get(mine, headers={"accept": "application/x-ccsds-kvn"})
        assert (messages.status_code, messages.text.count("CCSDS_CDM_VERS")) == (200, 2)
        read = [read_cdm_record(record) for record in split_records(messages.content, "cdm-kvn")]
        assert [each.miss_distance_m for each in read] == pytest.approx([100.0, 50.0], abs=1.0)

        # A corrected plan withdraws what the first one promised; the id of the old one keeps nothing of it.
        corrected = oem_through(ours, first, place * 1.02, -speed, begin_ns=after(120), end_ns=after(6600))
        again = client.post("/ephemerides", content=corrected, headers=KVN).json()["status"]
        assert all(correctness(platform.run("catalog_to_alerts", only=CHAIN)).values())
        assert [client.get(each).json()["conjunctions"] for each in (mine, others, again)] == [[], [], []]
        assert client.get(again).json()["state"] == "screened"


def state_of(platform: Platform, norad_id: int, time_ns: int) -> tuple[Any, Any]:
    catalogue = catalogue_at(platform.lake, platform.lake.log(ORBITAL_CATALOG).version())
    _, r, v = catalogue.propagator.at(catalogue.positions([norad_id]), np.array([time_ns]))
    return r[0], v[0]


@contextmanager
def endpoint_of(platform: Platform) -> Iterator[Client]:
    """The lookup endpoint of the platform, in this process."""
    source = LakeSource(platform.lake, platform.settings.landing_uri)
    live = LiveCatalogue(source, IndexStore(platform.home / "serving"), platform.clock.now_ns)
    live.start()
    puts = Puts(live, source.land)
    submissions = SubmittedEphemerides(platform.lake, platform.settings.landing_uri)
    with Client(application(live, puts, submissions)) as client:
        yield client
    puts.close()
    live.close()
