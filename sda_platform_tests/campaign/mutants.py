"""Do the tests find small changes of the code? ``make soak MUTANTS=1 [ARGS="--count 200 --seed 7 --record"]``.

Cosmic Ray (MIT) makes the mutants: an operator, a comparison, a number, a condition changed. Mutants are drawn by seed,
as many of each package. Each is applied to a copy of the commit. One run of each commit, without mutants, shows which
tests execute which line; it is kept in ``build``. A mutant meets the unit tests of its line, then those of Spark and of
Postgres. A failure counts if the same passes without the mutant. The log has a line of JSON for each mutant; a run with
the same log continues. ``equivalent_mutants.json`` lists mutants that nobody can observe, each with its reason; they
are not counted. ``--record`` writes the score and the survivors to ``surviving_mutants.json``.
"""

import argparse
import ast
import difflib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal

from coverage import CoverageData

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("lake", "landing", "recovery", "delivery", "edge")
TOOL: Final = "cosmic-ray==8.7.0"
TESTS: Final = "sda_platform_tests"
UNIT: Final = f"{TESTS}/unit"
# What only an engine or a server executes; these tests run the packages in their own process.
WITH_SERVERS: Final = (
    f"{TESTS}/pipeline", f"{TESTS}/system/test_postgres_subscriber.py", f"{TESTS}/system/test_object_store.py",
)  # fmt: skip
EQUIVALENT: Final = Path(__file__).with_name("equivalent_mutants.json")
SURVIVING: Final = Path(__file__).with_name("surviving_mutants.json")
# Of a run of tests, of one test, and the sums of what tests took without a mutant.
_WITHIN_S: Final = 300.0
_TEST_S: Final = 200
_UNIT_S: Final = 40.0
_WITH_SERVERS_S: Final = 120.0
_LONGEST_STATEMENT: Final = 12
# These begin, so that few files are collected for most mutants.
_FIRST: Final = 12
_NOTHING: Final = 5
_NAME: Final = re.compile(r"[^\W\d]\w*")
_IMPORT: Final = re.compile(r"\s*(from|import) ")
# Of those drawn, some are no mutants: a star before an argument is no operator, though one may be made of it.
_DRAWN: Final = 1.25
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

for line in sys.stdin:
    module, operator, number = json.loads(line)
    try:
        print(json.dumps(mutate_code(Path(module).read_text(), get_operator(operator)(), number)))
    except AttributeError:  # it lists a place that it cannot change
        print(json.dumps(None))
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
    """What each test takes in seconds, and which of them execute a line of a module below ``root``."""

    root: Path
    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, Sequence[str]]]

    def tests(self, module: str, line: int) -> set[str]:
        """Tests that execute the statement at ``line``.

        What is executed at import, in a worker of Spark or in another process shows no test: then those that execute a
        line with the name that the statement defines, or with that of its function.
        """
        found, waiting, seen = set[str](), [(module, line)], set[tuple[str, int]]()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            code, reached = self._code[place[0]], self.lines.get(place[0], {})
            statement = code.statements.get(place[1], range(place[1], place[1] + 1))
            tests = {test for each in statement for test in reached.get(each, ())} if place[1] in code.functions else ()
            found.update(tests)
            if not tests:
                waiting += (other for name in code.defined(place[1]) for other in self._uses.get(name, ()))
        return found

    @cached_property
    def _code(self) -> Mapping[str, "Code"]:
        return {module: Code((self.root / module).read_text()) for module in modules_below(self.root)}

    @cached_property
    def _uses(self) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Where each name is used, but not defined or imported."""
        found: dict[str, list[tuple[str, int]]] = {}
        for module, code in self._code.items():
            for line, text in enumerate(code.text.splitlines(), start=1):
                names = set[str]() if _IMPORT.match(text) else set(_NAME.findall(text)) - code.defined_at(line)
                for name in names:
                    found.setdefault(name, []).append((module, line))
        return found


class Code:
    """The text of a module, and of each line the smallest statement and the innermost function around it."""

    def __init__(self, text: str) -> None:
        """Parse it."""
        self.text = text
        self.statements: dict[int, range] = {}
        self.functions: dict[int, str] = {}
        self._defined: dict[int, set[str]] = {}
        self._begin: dict[int, set[str]] = {}
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
        for node in sorted(nodes, key=lambda node: len(_lines(node)), reverse=True):
            names = _defined_by(node)
            self._begin.setdefault(node.lineno, set()).update(names)
            for line in _lines(node):
                self.statements[line] = _lines(node)
                self._defined.setdefault(line, set()).update(names)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions |= dict.fromkeys(range(node.body[0].lineno, _lines(node).stop), node.name)
        for line, statement in self.statements.items():
            if len(statement) > _LONGEST_STATEMENT:
                self.statements[line] = range(line, line + 1)

    def defined(self, line: int) -> set[str]:
        """The names by which other lines use what ``line`` is part of."""
        return {self.functions[line]} if line in self.functions else self._defined.get(line, set())

    def defined_at(self, line: int) -> set[str]:
        """The names that are defined at ``line``."""
        return self._begin.get(line, set())


def _defined_by(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def modules_below(root: Path) -> list[str]:
    """The modules of the packages, paths below ``root``."""
    found = [path for package in PACKAGES for path in sorted((root / "sda_platform" / package).rglob("*.py"))]
    return [str(path.relative_to(root)) for path in found]


def all_mutants(root: Path) -> list[Mutant]:
    """Every mutant of the packages below ``root``, but those of annotations and decorators."""
    modules = modules_below(root)
    found = [Mutant(*json.loads(line)) for line in _within_tool(root, _LIST, "\n".join(modules)).splitlines()]
    ignored = {module: _annotated(root / module) for module in modules}
    return [
        each for each in found if each.line not in ignored[each.module] and "RemoveDecorator" not in each.operator
    ]  # fmt: skip


def with_code(root: Path, mutants: Sequence[Mutant]) -> list[tuple[Mutant, str]]:
    """Each mutant with the text of its module, but those that the tool cannot make or that are no Python."""
    requests = "".join(json.dumps([each.module, each.operator, each.number]) + "\n" for each in mutants)
    codes = map(json.loads, _within_tool(root, _APPLY, requests).splitlines())
    return [(each, code) for each, code in zip(mutants, codes, strict=True) if code and _is_python(code)]


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


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


def measured(root: Path, chosen: Sequence[str]) -> Reach:
    """Run these tests once, without a mutant; raises `RuntimeError` where none passes."""
    kept, log, data = root / "reach.json", root / "reach.log", root / "reach.coverage"
    os.environ["COVERAGE_FILE"] = str(data)
    coverage = [*(f"--cov=sda_platform/{package}" for package in PACKAGES), "--cov-context=test", "--cov-report="]
    run_pytest(root, [*coverage, *chosen], log, _Times(kept), math.inf)
    seconds = json.loads(kept.read_text())
    found: dict[str, dict[int, list[str]]] = {}
    lines = CoverageData(str(data))
    lines.read()
    for path in lines.measured_files():
        found[str(Path(path).relative_to(root))] = {
            line: sorted({test for each in contexts if (test := each.rpartition("|")[0]) in seconds})
            for line, contexts in lines.contexts_by_lineno(path).items()
        }
    if not found:
        raise RuntimeError(f"no test ran; see {log.read_text()[-2000:]}")
    return Reach(root, seconds, found)


def reached(root: Path, kept: Path, chosen: Sequence[str]) -> Reach:
    """What `measured` finds, or what the file ``kept`` has of it."""
    if not kept.exists():
        found = measured(root, chosen)
        numbers = {test: number for number, test in enumerate(found.seconds)}
        numbered = {
            module: {line: [numbers[test] for test in tests] for line, tests in each.items()}
            for module, each in found.lines.items()
        }
        kept.write_text(json.dumps([found.seconds, numbered]))
    seconds, stored = json.loads(kept.read_text())
    names = list(seconds)
    lines = {
        module: {int(line): [names[number] for number in numbers] for line, numbers in each.items()}
        for module, each in stored.items()
    }
    return Reach(root, seconds, lines)


class _Times:
    """Writes how long each test took that passed, in seconds, without its fixtures: an engine starts once for all."""

    def __init__(self, path: Path) -> None:
        self._path, self._seconds, self._failed = path, dict[str, float](), set[str]()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note one test."""
        if report.when == "call":
            self._seconds[report.nodeid] = report.duration
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


def likely(mutant: Mutant, reach: Reach, within_s: float) -> list[str]:
    """Tests that may find a mutant, the likely ones first, as many as fit into ``within_s``."""
    dotted, package = mutant.module.removesuffix(".py").replace("/", "."), mutant.module.split("/")[1]
    parent, _, name = dotted.rpartition(".")
    tests = reach.tests(mutant.module, mutant.line)
    files = {each.partition("::")[0] for each in tests or reach.seconds}
    texts = {file: (reach.root / file).read_text() for file in files}
    near = {file for file, text in texts.items() if dotted in text or f"from {parent} import {name}" in text}
    own = {file for file in files if file.startswith(f"{UNIT}/{package}/")}
    tests = tests or {test for test in reach.seconds if test.partition("::")[0] in near | own}

    def rank(test: str) -> tuple[bool, bool, float, str]:
        file = test.partition("::")[0]
        return file not in near, file not in own, reach.seconds[test], test

    ranked = sorted(tests, key=rank)
    total = list(accumulate(reach.seconds[test] for test in ranked))
    return [test for test, until in zip(ranked, total, strict=True) if until <= within_s] or ranked[:1]


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


def judged(root: Path, mutant: Mutant, changed: str, unit: Reach, with_servers: Reach) -> Judged:
    """Whether a test fails with the code ``changed`` and passes without it."""
    began, path = time.monotonic(), root / mutant.module
    sound = path.read_text()
    tests, slow = likely(mutant, unit, _UNIT_S), likely(mutant, with_servers, _WITH_SERVERS_S)
    killer = None
    for part in (tests[:_FIRST], tests[_FIRST:], others(root, mutant.module), slow):
        if part and (killer := _killer(root, path, changed, part)):
            break
    before, after = difference(sound, changed)
    fate: Fate = "killed" if killer else "survived"
    if not killer and (mutant.module, before, after) in equivalents():
        fate = "equivalent"
    seconds = round(time.monotonic() - began, 1)
    return Judged(mutant.id, fate, killer or "", seconds, len(tests) + len(slow), before, after)


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


def recorded(found: Iterable[Judged], seed: int) -> str:
    """The score and the survivors as JSON."""
    fates = {package: dict(sorted(each.items())) for package, each in sorted(score(found).items())}
    survivors = [
        {"id": each.id, "before": each.before, "after": each.after} for each in found if each.fate == "survived"
    ]  # fmt: skip
    return json.dumps({"seed": seed, "fates": fates, "survivors": survivors}, indent=2) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge mutants until ``--count`` have a fate; 0 if at least ``--least`` of them were killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--log", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=PACKAGES)
    parser.add_argument("--least", type=float, default=0.95)
    parser.add_argument("--record", action="store_true", help=f"write {SURVIVING.name}")
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
        unit, with_servers = reaches(root, ROOT / "build")
        found = (each for each in all_mutants(root) if each.module.split("/")[1] in chosen.packages)
        mutants = with_code(root, drawn(found, math.ceil(chosen.count * _DRAWN), chosen.seed))
        for mutant, changed in mutants[: chosen.count]:
            if mutant.id in done:
                continue
            done[mutant.id] = judgement = judged(root, mutant, changed, unit, with_servers)
            with chosen.log.open("a") as log:
                log.write(json.dumps(asdict(judgement)) + "\n")
            sys.stdout.write(f"{judgement.fate:11}{mutant.id}  {judgement.test} ({judgement.seconds:.0f} s)\n")
            if judgement.fate == "survived":
                sys.stdout.write(f"  - {judgement.before}\n  + {judgement.after}\n")
            sys.stdout.flush()
    if chosen.record:
        SURVIVING.write_text(recorded(done.values(), chosen.seed))
    counts = score(done.values())
    for package, fates in counts.items():
        sys.stdout.write(f"{package}: {', '.join(f'{count} {fate}' for fate, count in sorted(fates.items()))}\n")
    total = sum(counts.values(), Counter[str]())
    judged_so = total["killed"] + total["survived"]
    killed = total["killed"] / max(1, judged_so)
    sys.stdout.write(f"{judged_so} mutants, {killed:.1%} killed; {total['equivalent']} that nobody can observe\n")
    return 0 if killed >= chosen.least else 1


def reaches(root: Path, folder: Path) -> tuple[Reach, Reach]:
    """Which unit tests of the packages, and which with servers, reach what; kept in ``folder`` for this commit."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder.mkdir(parents=True, exist_ok=True)
    unit = reached(root, folder / f"reach-unit-{commit[:12]}.json", [f"{UNIT}/{package}" for package in PACKAGES])
    return unit, reached(root, folder / f"reach-servers-{commit[:12]}.json", WITH_SERVERS)


if __name__ == "__main__":
    sys.exit(main())
