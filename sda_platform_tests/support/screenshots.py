"""The pictures of the documentation: `sda demo` in a process of its own, and a headless browser on its UI.

``python -m sda_platform_tests.support.screenshots`` writes docs/images. With ``--home`` it visits a running demo.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.published import CATALOGUE, COLLECTOR, published
from sda_platform.registry import TABLES
from sda_platform.runtime import guardian, platform_home
from sda_platform_tests.support.browser import Page, opened
from sda_platform_tests.support.dashboard_picture import SCRAPE_S, draw
from sda_platform_tests.support.prometheus_server import prometheus
from sda_platform_tests.support.running_platform import eventually

IMAGES = Path(__file__).parents[2] / "docs" / "images"
_READY = "Ctrl-C stops the platform"
_TIMEOUT_S = 1800.0
_STOP_S = 60.0
_VIEWPORT = (1600, 1100)
_CONSOLE = (1360, 560)


def take(home: Path) -> None:
    """Visit the UI of the platform in ``home`` and write every picture."""
    url = str(platform_home.read_state(home)["addresses"]["webserver"])
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        groups = sorted({table.group for table in TABLES})
        finished = dg.RunsFilter(job_name=CATALOG_TO_ALERTS.name, statuses=[dg.DagsterRunStatus.SUCCESS])
        run_id = instance.get_runs(finished, limit=1)[0].run_id
    asset = f"/assets/{CONJUNCTION_ALERTS.name}"
    with opened(url, viewport=_VIEWPORT) as page:
        _picture(page, "/asset-groups", "lineage", *groups)
        _picture(page, f"{asset}?view=events", "conjunction_alerts", "Materialized in run", "rows_written", "preview")
        _picture(page, f"{asset}?view=checks", "checks", "exactly_once", "contract")
        _picture(page, f"/runs/{run_id}", "run", "conjunction_alerts", "RUN_SUCCESS")
        _picture(page, "/automation", "automation", "observations_to_alerts_landing", "run_failures")
    with opened(f"http://{published(home, CATALOGUE)}", viewport=_CONSOLE) as page:
        _picture(page, "/", "console", "This page follows new commits")


def take_dashboard(home: Path, minutes: float) -> None:
    """Have a Prometheus scrape the platform in ``home`` for a while, and draw the dashboard of `monitoring/`."""
    targets = {
        "127.0.0.1:3001": urlsplit(platform_home.read_state(home)["addresses"]["watchdog"]).netloc,
        "127.0.0.1:3100": published(home, CATALOGUE),
        "127.0.0.1:9100": published(home, COLLECTOR),
    }
    with prometheus({usual: str(address) for usual, address in targets.items()}, SCRAPE_S) as address:
        began_s = time.time()
        time.sleep(60 * minutes)
        empty = draw(address, began_s, IMAGES / "dashboard.png")
    print(f"docs/images/dashboard.png; without data: {', '.join(empty) or 'none'}")  # noqa: T201


def _picture(page: Page, path: str, name: str, *texts: str) -> None:
    page.goto(path)
    page.sees(*texts)
    page.loses("fetching statuses")
    page.save(IMAGES / f"{name}.png")
    print(f"docs/images/{name}.png")  # noqa: T201


@contextmanager
def demo() -> Iterator[Path]:
    """The home of a demo that has delivered its alerts; it ends with this process."""
    with tempfile.TemporaryDirectory(prefix="sda-screenshots-") as directory:
        output = Path(directory, "out")
        ports = dict.fromkeys(("SDA_WEBSERVER_PORT", "SDA_ENGINE_PORT", "SDA_HEALTH_PORT"), "0")
        environment = {**os.environ, "SDA_HOME": directory, **ports}
        leash = [sys.executable, guardian.__file__, "leash", str(os.getpid())]
        with output.open("w") as stream:
            process = subprocess.Popen(
                [*leash, sys.executable, "-m", "sda_platform.cli.main", "demo"],
                env=environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        try:
            eventually(lambda: _READY in output.read_text() or process.poll() is not None, _TIMEOUT_S)
            if _READY not in output.read_text():
                raise RuntimeError(f"the demo did not deliver its alerts:\n{output.read_text()}")
            yield Path(directory, "demo")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(_STOP_S)


def main() -> None:
    """Take the pictures of a demo of its own, or of one that runs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--home", type=Path, help="home of a running demo, such as var/demo")
    parser.add_argument("--minutes", type=float, default=20.0, help="span of the dashboard's picture; 0: none")
    options = parser.parse_args()
    with nullcontext(options.home) if options.home else demo() as home:
        take(home)
        if options.minutes:
            take_dashboard(home, options.minutes)


if __name__ == "__main__":
    main()
