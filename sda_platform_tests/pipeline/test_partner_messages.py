"""From their landing zones to tables: ephemerides, tracking data and telemetry of partners, and sampled metrics."""

import pytest

from sda_platform.catalog.tables import EPHEMERIDES
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.metric_values import MetricValue, encode_metric_values
from sda_platform.formats.telemetry import INVALID_FLAG
from sda_platform.ingest.tables import OBSERVATIONS, TELEMETRY_FRAMES
from sda_platform.metric_history.tables import PIPELINE_METRICS
from sda_platform_tests.support.collectors import telemetry
from sda_platform_tests.support.ephemerides_of_operators import oem_of
from sda_platform_tests.support.messages import MESSAGES
from sda_platform_tests.support.platform_run import Platform, correctness, written
from sda_platform_tests.support.segments import after, described

pytestmark = pytest.mark.pipeline


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
