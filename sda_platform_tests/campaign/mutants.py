"""Do the unit tests find small changes of the code? ``make soak MUTANTS=1 [ARGS="--count 200 --log FILE"]``.

Cosmic Ray (MIT) makes the mutants: an operator, a comparison, a number, a condition changed. Mutants are drawn by seed,
as many of each package. Each is applied to a copy of the commit. One run without mutants shows which tests execute
which line; a mutant meets those of its line. A failure counts if the same passes without the mutant. The log has a line
of JSON for each mutant; a run with the same log continues. ``equivalent_mutants.json`` lists mutants that nobody can
observe, each with its reason; they are not counted.
"""

import argparse
import ast
import difflib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal

from coverage import CoverageData

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("lake", "landing", "recovery", "delivery", "edge")
TOOL: Final = "cosmic-ray==8.7.0"
UNIT: Final = "sda_platform_tests/unit"
EQUIVALENT: Final = Path(__file__).with_name("equivalent_mutants.json")
# Of a run of tests, of one test, and the sum of what tests took without a mutant.
_WITHIN_S: Final = 300.0
_TEST_S: Final = 120
_TESTS_S: Final = 40.0
_LONGEST_STATEMENT: Final = 12
# These begin, so that few files are collected for most mutants.
_FIRST: Final = 12
_NOTHING: Final = 5
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
Fate = Literal["killed", "survived", "equivalent"]


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
    """What became of a mutant, by which of ``asked`` tests, in ``seconds`` of wall time; the lines that it changes."""

    id: str
    fate: Fate
    test: str
    seconds: float
    asked: int
    before: str
    after: str


@dataclass(frozen=True)
class Reach:
    """What each unit test takes in seconds, and which of them execute a line of a module."""

    seconds: Mapping[str, float]
    tests: Mapping[str, Mapping[int, Sequence[str]]]


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
    """Lines on which nothing is executed later: annotations, type aliases made of them, and options of dataclasses."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node.returns, *(each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg))]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.ClassDef):
            parts = [each for each in node.decorator_list if "dataclass" in ast.unparse(each)]
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


def measured(root: Path) -> Reach:
    """Run the unit tests of the packages once, without a mutant; raises `RuntimeError` where none passes."""
    kept, chosen = root / "reach.json", [f"{UNIT}/{package}" for package in PACKAGES]
    log, data = root / "reach.log", root / "reach.coverage"
    os.environ["COVERAGE_FILE"] = str(data)
    coverage = [*(f"--cov=sda_platform/{package}" for package in PACKAGES), "--cov-context=test", "--cov-report="]
    run_pytest(root, [*coverage, *chosen], log, _Times(kept), math.inf)
    seconds = json.loads(kept.read_text())
    found: dict[str, dict[int, list[str]]] = {}
    lines = CoverageData(str(data))
    lines.read()
    for path in lines.measured_files():
        module = str(Path(path).relative_to(root))
        if module.split("/")[1] in PACKAGES:
            found[module] = {
                line: sorted({test for each in contexts if (test := each.rpartition("|")[0]) in seconds})
                for line, contexts in lines.contexts_by_lineno(path).items()
            }
    if not found:
        raise RuntimeError(f"no unit test ran; see {log.read_text()[-2000:]}")
    return Reach(seconds, found)


def reached(root: Path, kept: Path | None) -> Reach:
    """What `measured` finds, or what ``kept`` has of it."""
    if kept is None or not kept.exists():
        found = measured(root)
        if kept is None:
            return found
        kept.write_text(json.dumps(asdict(found)))
    stored = json.loads(kept.read_text())
    lines = {module: {int(line): names for line, names in each.items()} for module, each in stored["tests"].items()}
    return Reach(stored["seconds"], lines)


class _Times:
    """Writes how long each test took that passed, in seconds."""

    def __init__(self, path: Path) -> None:
        self._path, self._seconds, self._failed = path, Counter[str](), set[str]()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add setup, call and teardown of one test."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write them."""
        self._path.write_text(json.dumps({k: v for k, v in self._seconds.items() if k not in self._failed}))


class _Chosen:
    """Runs these tests only, in this order, and writes which one failed first."""

    def __init__(self, tests: Sequence[str], failed: Path) -> None:
        self._order, self._failed = {name: number for number, name in enumerate(tests)}, failed

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave the others out."""
        files = {name for name in self._order if "::" not in name}
        chosen = (each for each in items if each.nodeid in self._order or each.nodeid.partition("::")[0] in files)
        items[:] = sorted(chosen, key=lambda each: self._order.get(each.nodeid, 0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the first failure."""
        if report.failed and not self._failed.exists():
            self._failed.write_text(report.nodeid)


def likely(root: Path, mutant: Mutant, reach: Reach) -> list[str]:
    """Unit tests that may find a mutant, the likely ones first, as many as fit into `_TESTS_S`.

    They are tests of the packages that run the statement. What runs only at import has none: then those whose file
    names the module or tests its package.
    """
    dotted, package = mutant.module.removesuffix(".py").replace("/", "."), mutant.module.split("/")[1]
    parent, _, name = dotted.rpartition(".")
    files = sorted({each.partition("::")[0] for each in reach.seconds})
    texts = {file: (root / file).read_text() for file in files}
    near = {file for file, text in texts.items() if dotted in text or f"from {parent} import {name}" in text}
    own = {file for file in files if file.startswith(f"{UNIT}/{package}/")}
    lines = reach.tests.get(mutant.module, {})
    tests = {test for line in _statement(root / mutant.module, mutant.line) for test in lines.get(line, ())}
    tests = tests or {test for test in reach.seconds if test.partition("::")[0] in near | own}

    def rank(test: str) -> tuple[bool, bool, float, str]:
        file = test.partition("::")[0]
        return file not in near, file not in own, reach.seconds[test], test

    ranked = sorted(tests, key=rank)
    total = list(accumulate(reach.seconds[test] for test in ranked))
    return [test for test, until in zip(ranked, total, strict=True) if until <= _TESTS_S] or ranked[:1]


def _statement(path: Path, line: int) -> range:
    """The lines of the smallest statement around ``line``."""
    around = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt)
    ]  # fmt: skip
    found = min((each for each in around if line in each), key=len, default=range(line, line + 1))
    return found if len(found) <= _LONGEST_STATEMENT else range(line, line + 1)


def run_pytest(root: Path, arguments: Sequence[str], log: Path, plugin: object, within_s: float) -> int:
    """pytest's exit code in a fork of this process; -1 after too long."""
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
            options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
            code = int(pytest.main([*options, *arguments], plugins=[plugin]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    ends = time.monotonic() + within_s
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > ends:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.05)


def others(root: Path, module: str) -> list[str]:
    """Files of unit tests of other packages that name ``module``."""
    parent, _, name = module.removesuffix(".py").replace("/", ".").rpartition(".")
    own = {root / UNIT / package for package in PACKAGES}
    found = [path for path in sorted((root / UNIT).rglob("test_*.py")) if not own & set(path.parents)]
    texts = {path: path.read_text() for path in found}
    names = (f"{parent}.{name}", f"from {parent} import {name}")
    return [str(path.relative_to(root)) for path, text in texts.items() if any(each in text for each in names)]


def run_tests(root: Path, tests: Sequence[str]) -> tuple[int, str]:
    """pytest's exit code of these tests, or of all in these files; and the one that failed first, if one did."""
    failed = root / "failed"
    failed.unlink(missing_ok=True)
    files = list(dict.fromkeys(each.partition("::")[0] for each in tests))
    options = ["-x", f"--timeout={_TEST_S}"]
    code = run_pytest(root, [*options, *files], root / "mutant.log", _Chosen(tests, failed), _WITHIN_S)
    return code, failed.read_text() if failed.exists() else ""


def judged(root: Path, mutant: Mutant, reach: Reach) -> Judged:
    """Whether a unit test fails with ``mutant`` and passes without it."""
    began, path = time.monotonic(), root / mutant.module
    sound, changed = path.read_text(), code_of(root, mutant)
    tests = likely(root, mutant, reach)
    killer = None
    for part in (tests[:_FIRST], tests[_FIRST:], others(root, mutant.module)):
        if part and (killer := _killer(root, path, changed, part)):
            break
    before, after = difference(sound, changed)
    fate: Fate = "killed" if killer else "survived"
    if not killer and (mutant.module, before, after) in equivalents():
        fate = "equivalent"
    seconds = round(time.monotonic() - began, 1)
    return Judged(mutant.id, fate, killer or "", seconds, len(tests), before, after)


def _killer(root: Path, path: Path, changed: str, tests: Sequence[str]) -> str | None:
    """The first of ``tests`` that fails with ``changed`` in ``path`` and passes without; None: none does."""
    sound, left = path.read_text(), list(tests)
    while left:
        path.write_text(changed)
        code, failed = run_tests(root, left)
        path.write_text(sound)
        if code in (0, _NOTHING):
            return None
        # It failed, could not be imported, ended the process or ran for too long: the same without the mutant?
        if run_tests(root, [failed] if failed else left)[0] in (0, _NOTHING):
            return failed or "its process"
        if failed not in left:  # of files, the rest is not told apart
            return None
        left.remove(failed)
    return None


def difference(sound: str, changed: str) -> tuple[str, str]:
    """The lines that differ, without and with a mutant."""
    lines = list(difflib.ndiff(sound.splitlines(), changed.splitlines()))
    before, after = (" ".join(each[2:].strip() for each in lines if each.startswith(sign)) for sign in "-+")
    return before, after


def equivalents() -> set[tuple[str, str, str]]:
    """Mutants that change nothing that can be observed: module, lines without and with."""
    return {(each["module"], each["before"], each["after"]) for each in json.loads(EQUIVALENT.read_text())}


def score(found: Iterable[Judged]) -> Mapping[str, Counter[str]]:
    """How many mutants of each package met each fate."""
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
    parser.add_argument("--reach", type=Path, help="where to keep which tests execute which line, for this commit")
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
        reach = reached(root, chosen.reach)
        for mutant in drawn(all_mutants(root, modules), chosen.count, chosen.seed):
            if mutant.id in done:
                continue
            done[mutant.id] = found = judged(root, mutant, reach)
            with chosen.log.open("a") as log:
                log.write(json.dumps(asdict(found)) + "\n")
            sys.stdout.write(f"{found.fate:11}{found.id}  {found.test} ({found.seconds:.0f} s)\n")
            sys.stdout.flush()
    counts = score(done.values())
    for package, fates in counts.items():
        sys.stdout.write(f"{package}: {', '.join(f'{count} {fate}' for fate, count in sorted(fates.items()))}\n")
    total = sum(counts.values(), Counter[str]())
    judged_so = total["killed"] + total["survived"]
    killed = total["killed"] / max(1, judged_so)
    sys.stdout.write(f"{judged_so} mutants, {killed:.1%} killed; {total['equivalent']} that nobody can observe\n")
    return 0 if killed >= chosen.least else 1


if __name__ == "__main__":
    sys.exit(main())
