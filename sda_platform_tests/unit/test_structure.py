"""The structure of the code: sizes of modules, names of classes, and imports without a circle."""

import ast
import re
import statistics
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

from sda_platform import arrays, units

PACKAGE = Path(__file__).parents[2] / "sda_platform"
TESTS = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
LARGEST_MODULE_LINES = 320
LARGEST_MEDIAN_LINES = 95


def lines_of(module: Path) -> int:
    return len(module.read_text().splitlines())


def test_public_class_names_are_unique() -> None:
    places = defaultdict(list)
    for module in MODULES:
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(module.relative_to(PACKAGE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_module_is_large() -> None:
    assert {str(each): lines_of(each) for each in MODULES if lines_of(each) > LARGEST_MODULE_LINES} == {}
    assert statistics.median(map(lines_of, MODULES)) < LARGEST_MEDIAN_LINES


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and those for types alone count too."""
    names = {".".join(each.relative_to(PACKAGE.parent).with_suffix("").parts): each for each in MODULES}
    imported: dict[str, set[str]] = {}
    for name, module in names.items():
        found = (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.ImportFrom))
        parts = [(node.module or "", each.name) for node in found for each in node.names]
        wanted = {whole if whole in names else source for source, part in parts for whole in [f"{source}.{part}"]}
        imported[name] = wanted & set(names) - {name}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


def test_units_of_time_and_kinds_of_arrays_have_one_home() -> None:
    """A constant of a module that is just a unit, or a kind of array of `arrays`, is imported instead."""
    values = {value for name, value in vars(units).items() if name.isupper()}
    unit = re.compile(r"_?([A-Z]+_PER_)?(NS|NANOSECONDS?|((MICRO|MILLI)?SECOND|MINUTE|HOUR|DAY)S?)(_[A-Z]+){0,3}")
    second = []
    for module in MODULES:
        for node in ast.parse(module.read_text()).body if module.stem not in ("units", "arrays") else []:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if not isinstance(target, ast.Name) or not isinstance(node, (ast.Assign, ast.AnnAssign)):
                continue
            is_number = isinstance(node.value, ast.Constant) and node.value.value in values
            if (is_number and unit.fullmatch(target.id)) or target.id in vars(arrays):
                second.append(f"{module.relative_to(PACKAGE)}: {target.id}")
    assert second == []


def test_no_test_is_imported() -> None:
    """What two tests share is in `support`."""
    imported = re.compile(rf"^\s*from {TESTS.name}\.(?:\w+\.)*test_\w+ import", re.MULTILINE)
    assert [str(each.relative_to(TESTS)) for each in TESTS.rglob("*.py") if imported.search(each.read_text())] == []
