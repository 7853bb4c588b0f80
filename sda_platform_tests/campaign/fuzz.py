"""Give every decoder ten million inputs: ``make soak FUZZ=1 [ARGS="--runs 100000 --only tle"]``.

Atheris (Apache-2.0) changes inputs and keeps those that reach new code. A target gets the same time as the others, or
``--runs`` inputs. What it keeps lies in ``build/fuzz``, where the next run continues; ``--merge`` writes the smallest
set that reaches the same code to the corpus of the repository, which a unit test gives to the targets. An input that
makes a target raise, or takes longer than ten seconds, is a defect; it is saved, and the exit code is 1.
"""

import argparse
import json
import re
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from sda_platform_tests.support.fuzz_targets import CORPUS, TARGETS, corpus, seeds

ROOT: Final = Path(__file__).parents[2]
WORK: Final = ROOT / "build/fuzz"
TOOL: Final = "atheris==3.0.0"
MOST_BYTES: Final = 2_048
_KEPT: Final = 150
_INSTRUMENTED: Final = ("sda_platform.formats", "sda_platform.http_gate", "sda_platform.history.spark_query_text")
_WITHIN_TOOL: Final = """
import sys
import atheris
import numpy, pyarrow.compute, numba, pandas
with atheris.instrument_imports(include=sys.argv[2].split(",")):
    from sda_platform_tests.support.fuzz_targets import TARGETS, seeds
for each in seeds(sys.argv[1]):
    TARGETS[sys.argv[1]](each)  # compiles kernels, which takes longer than an input may
atheris.Setup([sys.argv[0], *sys.argv[3:]], TARGETS[sys.argv[1]])
atheris.Fuzz()
"""
_EXECUTED: Final = re.compile(r"(?:stat::number_of_executed_units:|^Done|^#)\s*(\d+)", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz the chosen targets, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--runs", type=int, default=0, help="inputs of each target instead")
    parser.add_argument("--only", default="", help="a part of the targets' names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--merge", action="store_true", help="write the corpus of the repository")
    chosen = parser.parse_args(arguments)
    _install()
    failed = []
    for name in TARGETS:
        if chosen.only in name:
            limit = f"-runs={chosen.runs}" if chosen.runs else f"-max_total_time={int(chosen.seconds)}"
            if not _fuzz(name, limit, chosen.seed):
                failed.append(name)
            if chosen.merge:
                _merge(name)
    counts = Counter[str]()
    for line in _log().read_text().splitlines():
        entry = json.loads(line)
        counts[entry["target"]] += entry["inputs"]
    sys.stdout.writelines(f"{count:12,} {name}\n" for name, count in sorted(counts.items()))
    sys.stdout.write(f"{counts.total():12,} inputs, {len(failed)} targets with defects: {', '.join(failed)}\n")
    return 1 if failed else 0


def _log() -> Path:
    return WORK / "runs.jsonl"


def _install() -> None:
    """Atheris beside the environment: only this campaign needs it."""
    tool = WORK / "tool"
    if not (tool / "atheris").exists():
        install = [str(ROOT / ".venv/bin/uv"), "pip", "install", "--quiet", "--no-deps", "--target", str(tool), TOOL]
        subprocess.run([*install, "--python", sys.executable], check=True)


def _fuzz(name: str, limit: str, seed: int) -> bool:
    """Whether no input was a defect."""
    kept, defects, began = WORK / name, WORK / "defects" / name, time.monotonic()
    for directory in (kept, defects):
        directory.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate((*seeds(name), *corpus(name))):
        (kept / f"seed-{number}").write_bytes(each)
    options = [limit, f"-seed={seed}", f"-max_len={MOST_BYTES}", "-timeout=10", "-rss_limit_mb=4096"]
    options += ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={defects}/"]
    ended = _run(name, [*options, str(kept)])
    found = [int(each) for each in _EXECUTED.findall(ended.stderr)]
    entry = {"target": name, "inputs": max(found, default=0), "seconds": round(time.monotonic() - began), "seed": seed}
    with _log().open("a") as log:
        log.write(json.dumps(entry) + "\n")
    sys.stdout.write(f"{name}: {entry['inputs']:,} inputs in {entry['seconds']} s, exit code {ended.returncode}\n")
    if ended.returncode:
        sys.stdout.write(f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}\n")
    sys.stdout.flush()
    return ended.returncode == 0


def _run(name: str, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    paths = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(WORK / 'tool')!r}]\n"
    command = [sys.executable, "-c", paths + _WITHIN_TOOL, name, ",".join(_INSTRUMENTED), *options]
    return subprocess.run(command, cwd=WORK, capture_output=True, text=True, errors="replace", check=False)


def _merge(name: str) -> None:
    """Write the smallest inputs that reach what all kept ones reach, at most `_KEPT`, in an order of their own."""
    merged = WORK / "merged" / name
    merged.mkdir(parents=True, exist_ok=True)
    for old in merged.iterdir():
        old.unlink()
    _run(name, ["-merge=1", f"-max_len={MOST_BYTES}", "-verbosity=0", str(merged), str(WORK / name)])
    inputs = sorted((path.read_bytes() for path in merged.iterdir()), key=lambda each: (len(each), each))
    CORPUS.mkdir(exist_ok=True)
    with zipfile.ZipFile(CORPUS / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, each in _evenly(inputs):
            archive.writestr(zipfile.ZipInfo(f"{number:04}"), each, zipfile.ZIP_DEFLATED)


def _evenly(inputs: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    step = max(1.0, len(inputs) / _KEPT)
    for number in range(min(len(inputs), _KEPT)):
        yield number, inputs[int(number * step)]


if __name__ == "__main__":
    sys.exit(main())
