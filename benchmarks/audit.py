"""The performance audit of the collector: writes build/performance-audit.md (F6).

    python benchmarks/audit.py [--seconds 30] [--against REVISION] [--no-profile]

Stages with confidence intervals at several batch sizes, allocations per batch of 1,000 frames (memray), the widest
stacks and a flame graph under load (py-spy), and one paired comparison: the chain of kernels with the same written
with an object for each frame. Times are processor time, except of sealing, which waits for the disk.

With ``--against`` the stages of another revision are measured in turns with this one, in processes of their own. The
median of a process is one sample, because what slows a process slows all that it measures. The exit code is 1 if a
stage has become slower by 15 % or more with p < 0.05.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import memray
import numpy as np
from audit_stages import SEED, stages
from edge_process import collector, sender
from scipy.stats import bootstrap, mannwhitneyu

ROOT = Path(__file__).parents[1]
PAGE, FLAMES = ROOT / "build" / "performance-audit.md", ROOT / "build" / "collector-flame.svg"
BATCH = 1_000
SLOWER, SIGNIFICANT = 1.15, 0.05
ROUNDS = 6
Samples = Mapping[str, Mapping[str, Sequence[float]]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--against", help="a git revision")
    parser.add_argument("--no-profile", action="store_true")
    chosen = parser.parse_args()
    if chosen.against:
        return _compared(chosen.against)
    PAGE.parent.mkdir(exist_ok=True)
    measured = _measured(ROOT)
    widest = [] if chosen.no_profile else _profiled(chosen.seconds)
    PAGE.write_text(_page(measured, _allocations(), widest))
    print(f"{PAGE} is written")
    return 0


def _measured(root: Path, *more: str) -> Samples:
    """ns per frame by stage and size, of the version in ``root``, in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "audit_stages.py"), *more]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return dict(json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout))


def _allocations() -> dict[str, int]:
    """Allocations of one batch, by stage, after a first batch."""
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, work in stages(BATCH, Path(directory)).items():
            work()
            report = Path(directory) / f"{len(found)}.bin"
            with memray.Tracker(report, trace_python_allocators=True):
                work()
            found[name] = memray.FileReader(report).metadata.total_allocations
    return found


def _profiled(seconds: float) -> list[tuple[str, float]]:
    """The widest functions of a collector at 10,000 frames/s: name and share of its samples; also draws the flames."""
    sources = '[sources.radar]\nkind = "radar"\nbind = "127.0.0.1:0"\n'
    spy = str(Path(sys.executable).with_name("py-spy"))
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
        stacks = Path(directory) / "stacks.txt"
        with collector(Path(directory) / "home", sources) as running:
            sending = sender("radar", running.address("radar"), 10_000, seconds * 2 + 5)
            for form, out in (("raw", stacks), ("flamegraph", FLAMES)):
                command = [spy, "record", "-p", str(running.pid), "-d", f"{seconds:.0f}", "-r", "99", "-f", form, "-o"]
                subprocess.run([*command, str(out)], check=True, capture_output=True)
            sending.terminate()
            sending.wait()
        FLAMES.write_text(FLAMES.read_text().replace(f"{ROOT}/", ""))
        leaves: Counter[str] = Counter()
        for line in stacks.read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            leaves[stack.rpartition(";")[2]] += int(count)
    total = sum(leaves.values())
    return [(name, count / total) for name, count in leaves.most_common(8)]


def _compared(revision: str) -> int:
    """Measure this version and ``revision`` in turns, each first in every other turn; 1 if a stage is slower."""
    with tempfile.TemporaryDirectory() as directory:
        other = Path(directory) / "other"
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", str(other), revision], check=True)
        try:
            rounds = [_turn((ROOT, other) if number % 2 else (other, ROOT)) for number in range(ROUNDS)]
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(other)], check=True)
    slower = 0
    for stage in rounds[0][ROOT]:
        ours, theirs = ([median(each[root][stage]["1000"]) for each in rounds] for root in (ROOT, other))
        effect, p = _effect(theirs, ours)
        is_slower = effect >= SLOWER and p < SIGNIFICANT
        slower += is_slower
        verdict = "SLOWER" if is_slower else "as before" if p >= SIGNIFICANT else "differs within the bound"
        print(f"{stage}: {effect:.2f} times the time of {revision}, p = {p:.2g}: {verdict}")
    return 1 if slower else 0


def _turn(roots: Iterable[Path]) -> dict[Path, Samples]:
    return {root: _measured(root, "--size", "1000") for root in roots}


def _effect(before: Iterable[float], after: Iterable[float]) -> tuple[float, float]:
    """Ratio of medians, after to before, and the p-value of the Mann-Whitney test (exact for few samples)."""
    one, other = np.array(list(before)), np.array(list(after))
    return float(np.median(other) / np.median(one)), float(mannwhitneyu(one, other).pvalue)


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median with its 95 % confidence interval (percentile bootstrap)."""
    found = bootstrap((np.array(values),), np.median, rng=np.random.default_rng(SEED), method="percentile")
    return float(np.median(values)), float(found.confidence_interval.low), float(found.confidence_interval.high)


def _page(measured: Samples, allocations: Mapping[str, int], widest: Sequence[tuple[str, float]]) -> str:
    revision = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    before, after = measured["the same, an object a frame"][str(BATCH)], measured["cut, classify, pack"][str(BATCH)]
    effect, p = _effect(before, after)
    return f"""# Performance audit of the collector

`make audit` writes this page. Times are of the machine that it ran on; ratios and allocations carry over.

{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, revision {revision.stdout.strip()}, Python {platform.python_version()},
numpy {np.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, seed {SEED}.

## Stages: ns per frame, median (95 % interval)

{_table(measured, allocations)}

## One paired comparison

Fix: frames are cut, classified and packed by compiled kernels over one buffer, not as an object each. Both versions
give the same bytes on the same input, which is asserted before the clock starts.

Time per batch of {BATCH:,}: {effect:.3f} of the version before (p = {p:.2g}, Mann-Whitney, {len(after)} samples each).
Allocations: {allocations["the same, an object a frame"]:,} before, {allocations["cut, classify, pack"]:,} after.

`python benchmarks/audit.py --against REVISION` measures two versions in turns. It fails if a stage is slower by 15 % or
more with p < 0.05, by the medians of {ROUNDS} processes of each.
{_flames(widest)}"""


def _table(measured: Samples, allocations: Mapping[str, int]) -> str:
    sizes = list(next(iter(measured.values())))
    heads = ["stage", *(f"{int(size):,} a batch" for size in sizes), f"allocations per {BATCH:,}"]
    rows = [
        [stage, *("{:.1f} ({:.1f}–{:.1f})".format(*_interval(by_size[n])) for n in sizes), f"{allocations[stage]:,}"]
        for stage, by_size in measured.items()
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows])


def _flames(widest: Sequence[tuple[str, float]]) -> str:
    if not widest:
        return ""
    rows = "\n".join(f"| `{name}` | {share:.0%} |" for name, share in widest)
    return f"""
## Under load

![flame graph]({FLAMES.name})

10,000 radar frames/s over UDP, sampled at 99 Hz. The functions in which most time is spent:

| function | share |
|---|---|
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
