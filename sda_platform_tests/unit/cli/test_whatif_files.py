"""The file of `sda whatif --ephemeris`: of any format and compression, and of the primary."""

import gzip
from pathlib import Path

import click
import pytest

from sda_platform.cli.analysis.whatif import _ephemeris
from sda_platform_tests.support.sample_inputs import SAMPLES, stk_of_jason


def test_the_trajectory_is_of_the_primary_whatever_its_file_is_called__41(tmp_path: Path) -> None:
    path = tmp_path / "plan_2024.e.gz"
    path.write_bytes(gzip.compress(stk_of_jason(5).replace("# OBJECT_ID = 33105\n", "").encode()))
    assert len(_ephemeris(path, 25544).state) == 5
    oem = tmp_path / "plan.oem"
    oem.write_bytes(SAMPLES["oem-kvn"])
    assert len(_ephemeris(oem, 25544).state) > 5
    with pytest.raises(click.ClickException, match="is of object 25544, not of 33105"):
        _ephemeris(oem, 33105)
    with pytest.raises(click.ClickException, match="does not determine its format"):
        _ephemeris(tmp_path / "plan.unknown", 25544)
