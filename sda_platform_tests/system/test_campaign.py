"""The fault campaign on a real platform: one of its cases. `make soak` runs all, and compares with a twin."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.campaign.cases import cases
from sda_platform_tests.campaign.t2 import Campaign

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

CHOSEN = ("Dagster's database wiped",)
SEED = 1


def test_a_platform_that_is_killed_loses_and_doubles_nothing__CP_12_F_state(tmp_path: Path) -> None:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    chosen = [case for case in cases() if case.name in CHOSEN]
    assert len(chosen) == len(CHOSEN)
    with closing(Campaign(tmp_path, SEED, print)) as campaign:
        campaign.begin()
        for case in chosen:
            campaign.attempt(case)
        report = campaign.report(len(chosen))
    assert report.is_green, str(report)
