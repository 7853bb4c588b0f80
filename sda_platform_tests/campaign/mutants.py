"""Do the unit tests find small changes of the code? ``make soak MUTANTS=1 [ARGS="--count 200 --log FILE"]``.

Cosmic Ray (MIT) makes the mutants: an operator, a comparison, a number, a condition changed. Mutants are drawn by seed,
as many of each package. Each is applied to a copy of the commit. Unit tests that import its module run first, then
those of its package, then those that name the package. A test that fails is run again without the mutant: one that
fails there, too, kills nothing. The log has a line of JSON for each mutant; a run with the same log continues.
"""

import argparse
import ast
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("lake", "landing", "recovery", "delivery", "edge")
TOOL: Final = "cosmic-ray==8.7.0"
_WITHIN_S: Final = 300.0
# What most tests import, once for all: a mutant then costs a fork.
_PRELOADED: Final = (
    "numpy", "pandas", "pyarrow.compute", "pyarrow.parquet", "deltalake", "hypothesis", "httpx", "starlette.routing",
    "uvicorn", "pydantic", "numba", "dagster", "upath", "pandera", "pyspark.sql.connect.session", "pytest",
)  # fmt: skip
_LIST: Final = """
import json, sys
from pathlib import Path
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.plugins import get_operator, operator_names

operators = {name: get_operator(name) for name in operator_names()}
plain = {name: each() for name, each in sorted(operators.items()) if not each.arguments()}
for module in sys.stdin.read().split():
    nodes = list(ast_nodes(get_ast(Path(module).read_text())))
    for name, operator in plain.items():
        places = [begin for node in nodes for begin, _end in operator.mutation_positions(node)]
        for number, (line, column) in enumerate(places):
            print(json.dumps([module, name, line, column, number]))
"""
_APPLY: Final = """
import json, sys
from pathlib import Path
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

module, operator, number = json.loads(sys.stdin.read())
print(json.dumps(mutate_code(Path(module).read_text(), get_operator(operator)(), number)))
"""
Fate = Literal["killed", "survived"]


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a module: the one with this ``number`` that the operator makes there."""

    module: str
    operator: str
    line: int
    column: int
    number: int

    @property
    def id(self) -> str:
        """What the log names it by."""
        return f"{self.module}:{self.line}:{self.column} {self.operator} {self.number}"


@dataclass(frozen=True)
class Judged:
    """What became of a mutant, and by which test; ``seconds`` of wall time."""

    id: str
    fate: Fate
    test: str
    seconds: float


def all_mutants(root: Path, modules: Sequence[str]) -> list[Mutant]:
    """Every mutant of ``modules``, paths below ``root``, but those of annotations and decorators."""
    found = [Mutant(*json.loads(line)) for line in _within_tool(root, _LIST, "\n".join(modules)).splitlines()]
    ignored = {module: _annotated(root / module) for module in modules}
    return [
        each for each in found if each.line not in ignored[each.module] and "RemoveDecorator" not in each.operator
    ]  # fmt: skip


def code_of(root: Path, mutant: Mutant) -> str:
    """The module with the change of ``mutant``."""
    request = json.dumps([mutant.module, mutant.operator, mutant.number])
    return str(json.loads(_within_tool(root, _APPLY, request)))


def _within_tool(root: Path, script: str, given: str) -> str:
    command = [str(ROOT / ".venv/bin/uv"), "run", "--quiet", "--no-project", "--with", TOOL, "python", "-c", script]
    made = subprocess.run(command, cwd=root, input=given, text=True, capture_output=True, check=False)
    if made.returncode:
        raise RuntimeError(f"Cosmic Ray failed: {made.stderr[-2000:]}")
    return made.stdout


def _annotated(path: Path) -> set[int]:
    """Lines on which nothing is executed later: annotations, and type aliases made of them."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node.returns, *(each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg))]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        for part in parts:
            if part is not None:
                lines |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return lines


def drawn(found: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """``count`` mutants, as many of each package in turn: a place of the code, then one of its mutants."""
    chance = random.Random(seed)
    places: dict[str, dict[tuple[str, int, int], list[Mutant]]] = {package: {} for package in PACKAGES}
    for each in found:
        package = each.module.split("/")[1]
        places[package].setdefault((each.module, each.line, each.column), []).append(each)
    turns = []
    for package in PACKAGES:
        chosen = sorted(places[package])
        chance.shuffle(chosen)
        turns.append([chance.choice(places[package][place]) for place in chosen])
    return [turn[number] for number in range(max(map(len, turns))) for turn in turns if number < len(turn)][:count]


def stages(root: Path, module: str) -> Iterator[list[str]]:
    """Files of unit tests that may find a mutant of ``module``, the likely ones first; none twice."""
    dotted, package = module.removesuffix(".py").replace("/", "."), module.split("/")[1]
    unit = root / "sda_platform_tests/unit"
    texts = {path: path.read_text() for path in sorted(unit.rglob("test_*.py"))}
    parent, _, name = dotted.rpartition(".")
    near = [path for path, text in texts.items() if dotted in text or f"from {parent} import {name}" in text]
    own = [path for path in texts if path.is_relative_to(unit / package)]
    named = [path for path, text in texts.items() if f"sda_platform.{package}" in text]
    done: set[Path] = set()
    for stage in (near, own, named):
        fresh = [str(path.relative_to(root)) for path in stage if path not in done]
        done |= set(stage)
        if fresh:
            yield fresh


def run_tests(root: Path, tests: Sequence[str], log: Path) -> tuple[int, str]:
    """pytest's exit code in a fork of this process, and the first test that failed; -1 after too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(root)
        os.environ["PYTHONPATH"] = str(root)
        sys.path.insert(0, str(root))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        import pytest

        code = 3
        try:
            options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly"]
            code = int(pytest.main([*options, *tests]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    ends = time.monotonic() + _WITHIN_S
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > ends:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1, "too slow"
        time.sleep(0.05)
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return os.waitstatus_to_exitcode(status), failed[0].split(" - ")[0].partition(" ")[2] if failed else ""


def judged(root: Path, mutant: Mutant) -> Judged:
    """Whether a unit test fails with ``mutant`` and passes without it."""
    began, path = time.monotonic(), root / mutant.module
    sound, changed, log = path.read_text(), code_of(root, mutant), root / "mutant.log"
    fate: Fate = "survived"
    killer = ""
    for files in stages(root, mutant.module):
        tests = list(files)
        while tests and fate == "survived":
            path.write_text(changed)
            code, killer = run_tests(root, tests, log)
            path.write_text(sound)
            if code in (0, 5):
                break
            if code != 1 or not killer:  # it cannot be imported, ends the process, or runs for ever
                fate, killer = "killed", killer or "import"
            elif run_tests(root, [killer], log)[0] == 0:
                fate = "killed"
            else:  # it fails without the mutant, too
                tests = [*files, f"--deselect={killer}", *(each for each in tests if each.startswith("--deselect"))]
        if fate == "killed":
            break
    return Judged(mutant.id, fate, killer if fate == "killed" else "", round(time.monotonic() - began, 1))


def score(found: Iterable[Judged]) -> Mapping[str, Counter[str]]:
    """How many mutants of each package were killed and survived."""
    counts: dict[str, Counter[str]] = {}
    for each in found:
        counts.setdefault(each.id.split("/")[1], Counter())[each.fate] += 1
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge mutants until ``--count`` have a fate; 0 if at least ``--least`` of them were killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--log", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--least", type=float, default=0.95)
    chosen = parser.parse_args(arguments)
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    lines = chosen.log.read_text().splitlines() if chosen.log.exists() else []
    done = {each.id: each for each in (Judged(**json.loads(line)) for line in lines)}
    for name in _PRELOADED:
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="sda-mutants-") as name:
        root = Path(name)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "x"], cwd=root, input=archive.stdout, check=True)
        (root / ".venv").symlink_to(ROOT / ".venv")
        modules = [
            str(path.relative_to(root)) for package in PACKAGES
            for path in sorted((root / "sda_platform" / package).rglob("*.py"))
        ]  # fmt: skip
        for mutant in drawn(all_mutants(root, modules), chosen.count, chosen.seed):
            if mutant.id in done:
                continue
            done[mutant.id] = found = judged(root, mutant)
            with chosen.log.open("a") as log:
                log.write(json.dumps(asdict(found)) + "\n")
            sys.stdout.write(f"{found.fate:9}{found.id}  {found.test} ({found.seconds:.0f} s)\n")
            sys.stdout.flush()
    counts = score(done.values())
    for package, fates in counts.items():
        sys.stdout.write(f"{package}: {fates['killed']} of {fates.total()} killed\n")
    killed = sum(fates["killed"] for fates in counts.values()) / max(1, len(done))
    sys.stdout.write(f"{len(done)} mutants, {killed:.1%} killed\n")
    return 0 if killed >= chosen.least else 1


if __name__ == "__main__":
    sys.exit(main())
