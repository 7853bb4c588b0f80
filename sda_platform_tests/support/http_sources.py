"""Sources that ask over HTTP, and the records that they get."""

from pathlib import Path
from typing import Any

from sda_platform.formats.optical import parse_optical_record
from sda_platform_tests.support.collectors import NOW_NS, payloads

TLE = (
    "ISS (ZARYA)",
    "1 25544U 98067A   24306.17453704  .00022844  00000+0  40391-3 0  9995",
    "2 25544  51.6393 356.2817 0009296  77.9131  33.2203 15.49933303479592",
)


def record(number: int, second: float = 0.0) -> dict[str, Any]:
    return {
        "obs_id": f"obs-{number}",
        "timestamp_ns": NOW_NS + round(second * 1e9),
        "ra_rad": 1.0,
        "dec_rad": 0.5,
        "sigma_arcsec": 1.0,
        "site_id": "site-1",
    }


def optical(url: str, **options: Any) -> dict[str, dict[str, Any]]:
    return {"archive": {"kind": "optical", "url": f"{url}/records", "poll_interval_s": 0.01, **options}}


def names(tmp_path: Path) -> list[str]:
    return [parse_optical_record(payload).obs_id for payload in payloads(tmp_path, "optical")]


def pull(url: str, **options: Any) -> dict[str, dict[str, Any]]:
    return {"sets": {"kind": "pull", "url": f"{url}/gp.php?GROUP=stations", "format": "tle", **options}}
