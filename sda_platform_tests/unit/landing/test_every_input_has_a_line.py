"""No silent path: whatever comes in, by whatever way, is used (a row names it) or refused with a reason.

Formats x ways in x defects, generated. A refusal of the whole input is what its sender is answered with; a refused
record is a row with its error, which becomes a dead letter, and a line of `sda land`.
"""

import codecs
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from sda_platform.cli.data.refused_records import RefusedRecords
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.edge.sources import documents, upload
from sda_platform.formats.cutting import split_records
from sda_platform.formats.registry import known_format
from sda_platform.formats.segments import SegmentMeta, Sender
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.ingest import decoding as observations
from sda_platform.lake.lake import Lake
from sda_platform.landing.lander import Lander
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.landing.zone import LandingZone
from sda_platform.serving.puts import accepted_sets
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.sample_inputs import NOW_NS, SAMPLES
from sda_platform_tests.support.segments import described
from sda_platform_tests.support.small_catalogue import small_catalogue

DATA = Path(__file__).parents[2] / "data"
FIELD, CCSDS = DATA / "field", DATA / "messages" / "ccsds"
PUBLIC = {
    "CDM_ID": "1", "CREATED": "2024-05-01 00:00:00.000000", "EMERGENCY_REPORTABLE": "Y", "TCA": "2024-05-03T10:15:30",
    "MIN_RNG": "150", "PC": "1e-4", "SAT_1_ID": "40001", "SAT_1_NAME": "SAT A", "SAT1_OBJECT_TYPE": "PAYLOAD",
    "SAT_2_ID": "40002", "SAT_2_NAME": "SAT B", "SAT2_OBJECT_TYPE": "DEBRIS",
}  # fmt: skip
RADAR_CSV = b"time,az,el,range\n2024-05-03T00:00:00Z,10.0,20.0,900.0\n2024-05-03T00:00:10Z,11.0,21.0,905.0\n"


DEFECTS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "byte order mark": lambda data: codecs.BOM_UTF8 + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "CR LF": lambda data: data.replace(b"\n", b"\r\n"),
    "CR": lambda data: data.replace(b"\n", b"\r"),
    "blanks around": lambda data: b"\n\n" + data + b"\n\n",
    "words for numbers": lambda data: data.replace(b"20", b"twenty").replace(b"0.5", b"half").replace(b"24", b"xx"),
    "torn": lambda data: data.rstrip()[: len(data.rstrip()) * 3 // 4],
    "a radar's CSV": lambda _: RADAR_CSV,
    "a web page": lambda _: b"<!DOCTYPE html><html><body>503 Service Unavailable</body></html>\n",
    "nothing": lambda _: b"",
    "zeros": lambda data: b"\0" * len(data),
}
WHOLE = ("none", "byte order mark", "UTF-16", "CR LF", "CR", "blanks around")
BEFORE_NS = 1_217_548_800_000_000_000  # 2008-08-01
WAYS = ("land", "folder", "upload", "pull")


@dataclass
class Outcome:
    """How many records are used, every reason for which others, or the whole input, are not, and what is remarked."""

    used: int
    reasons: list[str]
    remarks: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return small_catalogue(tmp_path_factory.mktemp("lines"), [25544])


def arrive(way: str, data: bytes, name: str, lake: Lake, home: Path) -> Outcome:
    """Bring ``data`` in, and follow it to the rows of its table."""
    known = known_format(name)
    # Ephemerides come before they end.
    clock = MissionClock.starting_at(BEFORE_NS if known.zone == "ephemerides" else NOW_NS, rate=0.0)
    home.mkdir(exist_ok=True)
    path, root = home / f"in{known.suffixes[0]}", str(home / "landing")
    path.write_bytes(data)
    refused, sealed = RefusedRecords(lake), list[int]()

    def examine(segment: bytes, meta: SegmentMeta, first: int) -> None:
        sealed.append(meta.records)
        refused.examine(segment, meta, first)

    try:
        if way == "land":
            Lander(root, clock, on_segment=examine).land(path)
        elif way == "folder":
            Lander(root, clock, bounds=PartnerBounds()).land(path, feed=known.zone)
        elif way == "upload":
            chosen = upload._only_format(path, known.zone)
            Lander(root, clock, bounds=PartnerBounds()).land(path, feed=known.zone, segment_format=chosen)
        else:
            documents.seal_document(data, known.zone, name, clock, root, "pulled", PartnerBounds(), Sender("web"))
    except (PartnerFileError, documents.UnexpectedContent) as refusal:
        return Outcome(0, [str(refusal)])
    if way != "land":
        zone = LandingZone(root, known.zone)
        for segment in zone.pending():
            loaded = zone.read(segment)
            assert loaded.meta is not None
            examine(loaded.data, loaded.meta, 0)
    reasons = refused.reasons if sum(sealed) else ["it has no records"]
    return Outcome(sum(sealed) - refused.count, reasons, refused.remarks)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_input_has_a_line(name: str, defect: str, way: str, lake: Lake, tmp_path: Path) -> None:
    sound = len(list(split_records(SAMPLES[name], name)))
    found = arrive(way, DEFECTS[defect](SAMPLES[name]), name, lake, tmp_path)
    if defect in WHOLE:
        assert (found.used, found.reasons) == (sound, [])
    else:
        assert found.used < sound or not found.used
        assert found.reasons
        assert all(len(reason) > 15 for reason in found.reasons)


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("name", [name for name in SAMPLES if known_format(name).zone == "elements"])
def test_every_set_that_is_put_over_http_has_a_line(name: str, defect: str) -> None:
    data = DEFECTS[defect](SAMPLES[name])
    sets, refused = accepted_sets(data, name, NOW_NS)
    if defect in WHOLE:
        assert (len(sets), refused) == (2, [])
    else:
        assert len(sets) < 2
        assert all(len(each.reason) > 15 for each in refused)
        assert refused or not data.strip(b"\0") or not list(split_records(data, name))


@pytest.mark.parametrize("eccentricity", ["0.99", "0.9999999", "0.999999999", "0.9999999999999999"])
def test_a_set_that_leads_through_the_earth_is_refused_alone(eccentricity: str, lake: Lake, tmp_path: Path) -> None:
    """It ended the decoding of its batch: one record stopped the catalogue."""
    data = SAMPLES["omm-csv"].replace(b".00086", eccentricity.encode(), 1)
    found = arrive("land", data, "omm-csv", lake, tmp_path)
    assert (found.used, len(found.reasons)) == (1, 1)
    sets, refused = accepted_sets(data, "omm-csv", NOW_NS)
    assert (len(sets), [each.record for each in refused]) == (1, [0])


@pytest.mark.parametrize("way", WAYS)
def test_messages_of_space_track_in_json_are_read_as_messages(way: str, lake: Lake, tmp_path: Path) -> None:
    found = arrive(way, json.dumps([PUBLIC, {**PUBLIC, "CDM_ID": "2"}]).encode(), "cdm-json", lake, tmp_path)
    assert (found.used, found.reasons) == (2, [])


@pytest.mark.parametrize("ending", [".csv", ".json", ".txt", ".xml", ".kvn"])
def test_a_radars_own_columns_are_no_element_set(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"ours{ending}"
    path.write_bytes(RADAR_CSV if ending != ".json" else b'[{"az": 10.0, "el": 20.0}]')
    with pytest.raises(PartnerFileError, match="does not begin like"):
        Lander(str(tmp_path / "landing"), MissionClock.load(tmp_path)).land(path)
    assert not (tmp_path / "landing" / "elements").exists()


@pytest.mark.parametrize("way", WAYS)
def test_an_ephemeris_that_no_assessment_uses_has_a_line(way: str, lake: Lake, tmp_path: Path) -> None:
    oem = SAMPLES["oem-kvn"].decode()
    without = oem[: oem.index("COVARIANCE_START")].encode()
    found = arrive(way, without, "oem-kvn", lake, tmp_path)
    assert (found.used, found.reasons) == (1, [])
    assert ["states no covariance" in remark for remark in found.remarks] == [True]
    by_designator = arrive(way, oem.replace("= 25544", "= 2099-001A").encode(), "oem-kvn", lake, tmp_path / "2")
    assert (by_designator.used, "no object of the catalogue" in by_designator.reasons[0]) == (0, True)
    known = arrive(way, oem.replace("= 25544", "= 1998-067A").encode(), "oem-kvn", lake, tmp_path / "3")
    assert (known.used, known.reasons) == (1, [])
    past = arrive(way, re.sub("2024-05-0[23]T", "2008-05-03T", oem).encode(), "oem-kvn", lake, tmp_path / "4")
    assert (past.used, "before it was received" in past.reasons[0]) == (0, True)


def test_sda_land_lists_what_is_refused_and_its_exit_code_says_it(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_bytes(SAMPLES["omm-csv"])
    bad.write_bytes(SAMPLES["omm-csv"].replace(b"15.5011", b"fast", 1))
    MissionClock.starting_at(NOW_NS, rate=0.0).save(tmp_path / "home")
    home = ("--home", str(tmp_path / "home"), "land")
    done = CliRunner().invoke(main, [*home, str(good)])
    assert (done.exit_code, "2 records" in done.output, "refused" in done.output) == (0, True, False)
    done = CliRunner().invoke(main, [*home, str(bad)])
    assert done.exit_code == 1
    assert "1 of them refused" in done.output
    assert "record 0, line 2: MEAN_MOTION is 'fast', must be a number" in done.output
    page = tmp_path / "page.csv"
    page.write_bytes(RADAR_CSV)
    done = CliRunner().invoke(main, [*home, str(page)])
    told = " ".join(done.output.split())
    assert (done.exit_code, "does not begin like any of omm-csv, satcat-csv; if it is one" in told) == (1, True)
    assert f"need a mapping in {tmp_path}/home/mappings (docs/how-to/add-a-sensor.md#" in told


def test_what_lands_late_is_said_with_the_command_that_has_it_fitted(tmp_path: Path) -> None:
    lake, data = lake_at(tmp_path), SAMPLES["tdm-kvn"]
    meta = described(data, "tracking", segment_format="tdm-kvn")
    times_ns = sorted(observations.decode([(data, meta)])["sensor_time_ns"].to_pylist())
    for first_open_ns, late in ((times_ns[0], 0), (times_ns[-1] + 1, len(times_ns))):
        commit(lake, FUSED_TRACKS, [], watermarks={FIRST_OPEN_WINDOW: first_open_ns})
        found = RefusedRecords(lake)
        found.examine(data, meta, 0)
        text = "\n".join(found.lines())
        assert (found.count, found.late) == (0, late)
        assert ("sda lake reprocess --kind late_observation" in text) == bool(late), text
