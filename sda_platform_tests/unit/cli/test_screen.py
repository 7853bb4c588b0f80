"""`sda screen`: the published approaches of a real catalogue, from any file of it, and clear words where it cannot."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import sda_platform
from sda_platform.catalog.orbits import Catalogue
from sda_platform.cli.analysis.screen_catalogue import age_warning, read_elements
from sda_platform.cli.main import main
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.tracked_states import Tracks
from sda_platform.formats.omm import OMM_CSV_COLUMNS
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.track_columns import SCHEMA

CATALOGUE = Path(sda_platform.__file__).parent / "simulation/data/celestrak_on_orbit_2024-11-01.omm.csv.gz"
TRUTH = Path(__file__).parents[2] / "data" / "screening"
START = "2024-11-01T00:00:00Z"
TEN_MINUTES = "0.16666666666666666"

COLUMNS = (
    "norad_id_1,object_name_1,norad_id_2,object_name_2,tca_utc,miss_km,radial_km,in_track_km,cross_track_km,"
    "rel_speed_km_s,pc_2d,largest_pc_2d,age_1_days,age_2_days"
)


def sda_screen(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["screen", *arguments])


def published(hours: float) -> list[dict[str, str]]:
    end = parse_iso_ns(START) + hours * 3600 * SECOND_NS
    with gzip.open(TRUTH / "celestrak_2024-11-01_events_24h_5km.csv.gz", "rt") as file:
        return [row for row in csv.DictReader(file) if parse_iso_ns(row["tca_utc"]) < end]


@pytest.fixture
def small_catalogue(tmp_path: Path) -> Path:
    """The objects of the day's first events, one of them twice with an older epoch, and a line that is nothing."""
    met = {int(row[name]) for row in published(0.25) for name in ("norad_lo", "norad_hi")}
    column = OMM_CSV_COLUMNS.index("NORAD_CAT_ID")
    lines = gzip.decompress(CATALOGUE.read_bytes()).decode().splitlines()
    kept = [line for line in lines[1:] if int(line.split(",")[column]) in met]
    older = kept[0].replace("2024-1", "2023-1", 1)
    path = tmp_path / "small.csv"
    path.write_text("\n".join([lines[0], *kept, older, "no,element,set"]) + "\n")
    return path


def test_ten_minutes_of_all_against_all_are_the_published_events(tmp_path: Path) -> None:
    out = tmp_path / "events.parquet"
    answer = sda_screen(
        "--catalog", str(CATALOGUE), "--start", START, "--hours", TEN_MINUTES, "--processes", "1", "--out", str(out)
    )
    assert answer.exit_code == 0, answer.output
    found = pq.read_table(out)
    expected = published(1 / 6)
    assert found.column_names == COLUMNS.split(",")
    assert [(e["norad_id_1"], e["norad_id_2"]) for e in found.select(["norad_id_1", "norad_id_2"]).to_pylist()] == [
        (int(row["norad_lo"]), int(row["norad_hi"])) for row in expected
    ]
    tca_s = [parse_iso_ns(t) / 1e9 for t in found.column("tca_utc").to_pylist()]
    np.testing.assert_allclose(tca_s, [parse_iso_ns(row["tca_utc"]) / 1e9 for row in expected], rtol=0, atol=0.002)
    miss_km = found.column("miss_km").to_numpy()
    np.testing.assert_allclose(miss_km, [float(row["miss_km"]) for row in expected], rtol=0, atol=1e-5)
    parts = np.stack([found.column(f"{axis}_km").to_numpy() for axis in ("radial", "in_track", "cross_track")])
    np.testing.assert_allclose(np.linalg.norm(parts, axis=0), miss_km, rtol=0, atol=1e-4)


def test_without_an_output_those_with_the_largest_pc_are_listed_as_the_platform_assesses_them(
    small_catalogue: Path, tmp_path: Path
) -> None:
    """Pc is that of `assess_candidates` for the same pair, sets and radii."""
    common = [str(small_catalogue), "--start", START, "--hours", "0.25", "--processes", "1"]
    answer = sda_screen(*common)
    assert answer.exit_code == 0 and "Pc: 2D" in answer.output and "–" in answer.output
    assert sda_screen(*common, "--out", str(tmp_path / "events.csv")).exit_code == 0
    rows = list(csv.DictReader((tmp_path / "events.csv").open()))
    first = max(rows, key=lambda row: float(row["pc_2d"]))
    assert f"{first['norad_id_1']} {first['object_name_1']}" in answer.output
    file = read_elements(small_catalogue, parse_iso_ns(START), parse_iso_ns(START) + 1)
    catalogue = Catalogue(Propagator(file.elements), file.names)
    candidate = {"event_id": "e", **{f"norad_id_{n}": int(first[f"norad_id_{n}"]) for n in (1, 2)},
                 "tca_time_ns": parse_iso_ns(first["tca_utc"])}  # fmt: skip
    (ours,) = assess_candidates(
        pa.Table.from_pylist([candidate]),
        catalogue,
        Tracks.of(SCHEMA.empty_table()),
        OperatorEphemerides.none(),
        Volume.sphere(5.0),
        ObjectSizes(),
    ).to_pylist()
    assert float(first["pc_2d"]) == pytest.approx(ours["probability_2d"], rel=1e-3)
    assert float(first["in_track_km"]) == pytest.approx(ours["in_track_miss_km"], abs=1e-3)


def test_what_was_left_out_is_reported_and_written_next_to_the_events(small_catalogue: Path, tmp_path: Path) -> None:
    answer = sda_screen(
        "--catalog", str(small_catalogue), "--start", START, "--hours", "1", "--processes", "1",
        "--out", str(tmp_path / "events.csv"),
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output
    assert "1 records could not be read" in answer.output
    assert "1 element sets are in force at no time of the window" in answer.output
    assert (tmp_path / "events.csv").read_text().startswith(f"{COLUMNS}\n")


def test_the_newest_set_of_an_object_counts(small_catalogue: Path) -> None:
    start_ns = parse_iso_ns(START)
    file = read_elements(small_catalogue, start_ns, start_ns + 1)
    assert len(np.unique(file.elements.norad_id)) == len(file.elements)
    assert file.elements.epoch_time_ns.min() > parse_iso_ns("2024-01-01T00:00:00Z")


def test_a_fleet_may_be_screened_in_volumes_and_without_approaches_among_itself(
    small_catalogue: Path, tmp_path: Path
) -> None:
    members = [int(row[name]) for row in published(0.1) for name in ("norad_lo", "norad_hi")]
    fleet, volumes = tmp_path / "fleet.csv", tmp_path / "volumes.csv"
    fleet.write_text("norad_id,name,operator\n" + "".join(f"{n},x,\n" for n in sorted(set(members))))
    boxes = [f"{regime},box,2,4,4\n" for regime in ("LEO1", "LEO2", "LEO3", "LEO4")]
    volumes.write_text("regime,shape,radial_km,in_track_km,cross_track_km\n" + "".join(boxes))
    common = ["--catalog", str(small_catalogue), "--start", START, "--hours", "0.1", "--processes", "1"]
    events = {}
    for name, options in {
        "sphere": ["--threshold-km", "6"],
        "boxes": ["--fleet", str(fleet), "--volumes", str(volumes)],
        "others": ["--fleet", str(fleet), "--volumes", str(volumes), "--no-fleet-internal"],
    }.items():
        answer = sda_screen(*common, *options, "--out", str(tmp_path / f"{name}.csv"))
        assert answer.exit_code == 0, answer.output
        events[name] = set((tmp_path / f"{name}.csv").read_text().splitlines()[1:])
    assert events["sphere"] > events["boxes"] > events["others"]


def test_approaches_that_errors_may_make_near_are_reported_beside_those_of_the_sphere(
    small_catalogue: Path, tmp_path: Path
) -> None:
    common = ["--catalog", str(small_catalogue), "--start", START, "--hours", "0.1", "--processes", "1"]
    found = {}
    for name, options in {"sphere": [], "sigmas": ["--sigmas", "2", "--reach-km", "20"]}.items():
        answer = sda_screen(*common, *options, "--threshold-km", "3", "--out", str(tmp_path / f"{name}.csv"))
        assert answer.exit_code == 0, answer.output
        found[name] = {
            (row["norad_id_1"], row["norad_id_2"], row["tca_utc"]): float(row["miss_km"])
            for row in csv.DictReader((tmp_path / f"{name}.csv").open())
        }
    assert "within 3 km, or 2 sigmas and 20 km" in answer.output
    assert found["sigmas"].items() > found["sphere"].items()
    farther = [miss_km for event, miss_km in found["sigmas"].items() if event not in found["sphere"]]
    assert farther and min(farther) > 3.0 and max(farther) <= 20.0
    both = sda_screen(*common, "--sigmas", "2", "--volumes", "standard", "--out", str(tmp_path / "no.csv"))
    assert both.exit_code == 2 and "--sigmas belongs to a threshold" in both.output
    alone = sda_screen(*common, "--reach-km", "20", "--out", str(tmp_path / "no.csv"))
    assert alone.exit_code == 2 and "--reach-km needs --sigmas" in alone.output


def test_iridium_33_and_cosmos_2251_are_seen_to_collide(tmp_path: Path) -> None:
    """TCA and miss as published for the last element sets before it; the real collision was 11 ms later."""
    case = json.loads((TRUTH / "iridium_cosmos.json").read_text())[0]
    lines = [line for pair in case["tle"].values() for line in pair]
    (tmp_path / "last.tle").write_text("\n".join(lines) + "\n")
    answer = sda_screen(
        "--catalog", str(tmp_path / "last.tle"), "--start", "2009-02-10T12:00:00Z", "--hours", "8",
        "--processes", "1", "--out", str(tmp_path / "events.csv"),
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output
    (event,) = csv.DictReader((tmp_path / "events.csv").open())
    assert (event["norad_id_1"], event["norad_id_2"]) == ("22675", "24946")
    off_ns = parse_iso_ns(event["tca_utc"]) - parse_iso_ns("2009-02-10T16:55:59.795Z")
    assert abs(off_ns) <= 20_000_000
    assert float(event["miss_km"]) == pytest.approx(0.698, abs=0.001)


@pytest.mark.parametrize(
    ("name", "content", "out", "message"),
    [
        ("a.doc", b"", "e.csv", "its name does not determine its format"),
        ("a.csv", b"", "e.csv", "holds no element set"),
        ("a.csv.gz", b"no archive", "e.csv", "cannot be read"),
        ("a.xml", b"<omm>", "e.csv", "holds no element set: line 1: the message ends before its closing </omm>"),
        ("a.csv", b"", "e.txt", "can be written as .csv or .parquet"),
        ("a.csv", b"", "nowhere/e.csv", "there is no directory"),
    ],
)
def test_a_file_that_cannot_be_used_ends_in_one_line(
    tmp_path: Path, name: str, content: bytes, out: str, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    answer = sda_screen("--catalog", str(tmp_path / name), "--start", START, "--out", str(tmp_path / out))
    assert answer.exit_code == 1
    assert message in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize(("start", "warns"), [("2024-11-03T00:00:00Z", False), ("2025-11-01T00:00:00Z", True)])
def test_old_sets_are_named(tmp_path: Path, start: str, *, warns: bool) -> None:
    column, lines = OMM_CSV_COLUMNS.index("NORAD_CAT_ID"), gzip.decompress(CATALOGUE.read_bytes()).decode().splitlines()
    path = tmp_path / "few.csv"
    path.write_text("\n".join([lines[0], *(line for line in lines if line.split(",")[column] in ("25544", "20580"))]))
    out = str(tmp_path / "events.csv")
    answer = sda_screen("--catalog", str(path), "--start", start, "--hours", "0.1", "--processes", "1", "--out", out)
    assert answer.exit_code == 0, answer.output
    assert ("the element sets of 2 of 2 objects are more than 7 days" in answer.output.replace("\n", " ")) == warns
    site = ["passes", "--lat", "50", "--lon", "10", "--hours", "1", "--start", start, "--catalog", str(path), "--json"]
    assert ("more than 7 days from their epoch" in CliRunner().invoke(main, site).stderr) == warns


def test_the_age_of_sets_counts_at_the_far_end_of_their_use() -> None:
    day, ids = 86_400 * 10**9, np.array([1, 1, 2])
    epochs, begin = np.array([0, 8, 0]) * day, np.array([0, 6, 0]) * day
    assert age_warning(ids, epochs, begin, np.array([6, 9, 7]) * day) is None
    late = age_warning(ids, epochs, begin, np.array([6, 9, 20]) * day)
    assert late is not None and "1 of 2 objects" in late and "that of 2 is 20.0 days" in late
    before = age_warning(ids, epochs + 8 * day, begin, begin + day)
    assert before is not None and "2 of 2 objects" in before, "a set is old before its epoch, too"
