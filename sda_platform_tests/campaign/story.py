"""An hour of the demo's story on a real platform, and what must have happened: that, and nothing else.

    make soak STORY=1 ARGS='--minutes 60'

Red alerts, suspected manoeuvres and notices must be those of the story's chapters. The exit code is 1 where one is
missing or another came.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from sda_platform.clock import MissionClock, iso
from sda_platform.conjunction.cdm_comparison import comparisons_with
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake, without_session
from sda_platform.settings import Settings
from sda_platform.simulation.story import FRAGMENT, OTHER_CENTRE, SATELLITE, SILENT_RADAR
from sda_platform.tasking.tables import TASK_OUTCOMES
from sda_platform_tests.support.failure_webhook import failure_webhook

PAIR = tuple(sorted((SATELLITE, FRAGMENT)))
console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo for a while, and judge what its lake and its notices have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of the demo, from its first lines on")
    minutes = parser.parse_args(arguments).minutes
    home = tempfile.mkdtemp(prefix="sda-story-")
    with failure_webhook() as receiver:
        log = Path(home, "demo.log")
        with log.open("wb") as output:
            program = [str(Path(sys.executable).with_name("sda")), "--home", home, "demo"]
            environment = {**os.environ, "SDA_FAILURE_WEBHOOK": receiver.url}
            demo = subprocess.Popen(program, stdout=output, stderr=output, env=environment)
            time.sleep(60 * minutes)
            demo.send_signal(signal.SIGINT)
            code = demo.wait(120)
        console.print(log.read_text())
        notices = [report for _, report in receiver.received]
        failures = [*judged(Path(home, "demo"), notices), *([f"the demo ended with {code}"] if code else [])]
    for failure in failures:
        console.print(f"wrong: {failure}")
    console.print(f"{minutes:g} min of the story: {len(failures)} failures")
    if failures:
        console.print(f"kept for examination: {home}")
        return 1
    shutil.rmtree(home)
    return 0


def judged(home: Path, notices: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What did not happen as the story has it, in words."""
    clock = MissionClock.load(home)
    lake = Lake(Settings(home=home).lake_uri, clock, without_session)
    yield from _judged_alerts(lake)
    yield from _judged_tasks(lake)
    burns = {row["norad_id"] for row in lake.log(TRACKS).rows(["norad_id", "manoeuvre_time_ns"]).to_pylist()
             if row["manoeuvre_time_ns"] is not None}  # fmt: skip
    if burns != {SATELLITE}:
        yield f"suspected manoeuvres of {sorted(burns)}, not of {SATELLITE} alone"
    told = [(report["vital"], report["state"], tuple(report["subjects"])) for report in notices if "vital" in report]
    expected = [("sources_report", state, (SILENT_RADAR,)) for state in ("begun", "over")]
    if told != expected:
        yield f"notices {told}, not {expected}"
    yield from (f"a run failed: {report}" for report in notices if "vital" not in report)


def _judged_alerts(lake: Lake) -> Iterator[str]:
    names = ["norad_id_1", "norad_id_2", "tca_time_ns", "as_of_ns", "op", "risk"]
    alerts = lake.log(CONJUNCTION_ALERTS).rows(names).to_pylist()
    red = [row for row in alerts if row["risk"] == "red" and row["op"] == INSERT]
    pairs = {tuple(sorted((row["norad_id_1"], row["norad_id_2"]))) for row in red}
    if pairs != {PAIR}:
        yield f"red alerts of {sorted(pairs)}, not of {PAIR} alone"
        return
    console.print(f"red first as of {iso(min(row['as_of_ns'] for row in red))}")
    # After the manoeuvre there may be no such encounter any more: the message is about the one that was red.
    if [each["originator"] for each in comparisons_with(lake, red[0])] != [OTHER_CENTRE]:
        yield f"the red alert has no message of {OTHER_CENTRE}"


def _judged_tasks(lake: Lake) -> Iterator[str]:
    names = ["norad_id", "priority_class", "state", "realised_gain", "op"]
    tasks = lake.log(TASK_OUTCOMES).rows(names).to_pylist()
    # The satellite is always observed by its own links; the fragment by the pass that the red alert asked for.
    gains = [
        row["realised_gain"] for row in tasks
        if row["norad_id"] == FRAGMENT and row["priority_class"] == 0 and row["state"] == "observed"
    ]  # fmt: skip
    if not any(gain and gain > 0 for gain in gains):
        yield f"no observation of {FRAGMENT} that the red alert asked for has brought anything: {gains}"


if __name__ == "__main__":
    sys.exit(main())
