"""How soon the engine listens and is warm, with the archive of its classes and without it (the peer).

    python benchmarks/engine_start.py [--rounds 3]

The two start in turns, each in a directory of its own, and are warmed as `sda up` warms them: every pool's session
answers a query and Delta commits. A warm-up whose answer is wrong ends with an error. Wall time is that of this
machine; the processor time of the engine hardly depends on what else runs.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from edge_process import cpu_s
from rich.console import Console
from rich.table import Table as Grid

from sda_platform.runtime.class_archive import listening_engine, warm
from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform.spark.class_archive import use_archive
from sda_platform.spark.java import find_java

FIGURES = ("listening, wall s", "listening, processor s", "warm, wall s", "warm, processor s")


def main() -> int:
    """Run the benchmark; 1 where there is no archive to compare with."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    console = Console(highlight=False)
    if not use_archive(find_java()):
        console.print("[bold red]there is no archive[/]: python -m sda_platform.runtime.class_archive")
        return 1
    measured: dict[bool, list[tuple[float, ...]]] = defaultdict(list)
    for number in range(2 * rounds):
        is_archived = number % 2 == 0
        with tempfile.TemporaryDirectory(prefix="sda-engine-start-") as directory:
            measured[is_archived].append(_start(Path(directory), is_archived=is_archived))
    grid = Grid("median of", "with archive", "without", "ratio", box=None)
    for name, ours, others in zip(
        FIGURES, zip(*measured[True], strict=True), zip(*measured[False], strict=True), strict=True
    ):
        ours_s, others_s = statistics.median(ours), statistics.median(others)
        grid.add_row(name, f"{ours_s:.1f}", f"{others_s:.1f}", f"{ours_s / others_s:.2f}")
    console.print(grid)
    return 0


def _start(directory: Path, *, is_archived: bool) -> tuple[float, ...]:
    """Start an engine and warm it; the four figures since its start."""
    for name in ("warehouse", "scratch"):
        (directory / name).mkdir()
    port, java = free_port(0), find_java()
    command = engine.server_command(java, directory, port=port, driver_memory="3g")
    left_out = [] if is_archived else use_archive(java)
    command = [each for each in command if each not in left_out]
    began_s = time.monotonic()
    with listening_engine(command, directory, port) as server:
        listening = (time.monotonic() - began_s, cpu_s(server.pid))
        warm(directory, port)
        return (*listening, time.monotonic() - began_s, cpu_s(server.pid))


if __name__ == "__main__":
    sys.exit(main())
