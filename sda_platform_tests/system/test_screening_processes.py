"""`sda screen` in several processes."""

import csv
import gzip
from pathlib import Path

from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform_tests.support.segments import catalogue_of

TRUTH = Path(__file__).parents[1] / "data/screening/celestrak_2024-11-01_events_24h_5km.csv.gz"
START = "2024-11-01T00:00:00Z"


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    catalogue, outs = tmp_path / "small.csv", [tmp_path / "one.csv", tmp_path / "two.csv"]
    with gzip.open(TRUTH, "rt") as file:
        first = [row for row in csv.DictReader(file) if row["tca_utc"] < "2024-11-01T00:15"]
    catalogue.write_bytes(catalogue_of({int(row[name]) for row in first for name in ("norad_lo", "norad_hi")}))
    for processes, out in enumerate(outs, 1):
        asked = ["--catalog", str(catalogue), "--start", START, "--hours", "2.5", "--processes", str(processes)]
        CliRunner().invoke(main, ["screen", *asked, "--out", str(out)])
    assert outs[0].read_text() == outs[1].read_text()
    assert len(outs[0].read_text().splitlines()) > 1
