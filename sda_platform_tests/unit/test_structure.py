"""The structure of the code: sizes of modules, and one meaning for each public class name."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sda_platform"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_public_class_names_are_unique() -> None:
    places = defaultdict(list)
    for module in MODULES:
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(module.relative_to(PACKAGE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
