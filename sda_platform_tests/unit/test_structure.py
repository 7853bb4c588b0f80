"""The structure of the code: sizes of modules, names of classes, and imports without a circle."""

import ast
import statistics
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sda_platform"
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
