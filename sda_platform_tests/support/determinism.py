"""The lint of determinism: what code that makes rows must not call, found in its syntax tree (spec 66).

Rows follow from the input windows, ``as_of`` and the settings alone. So the clock, chance, names of files, and any
order that nothing fixes (rows of an aggregation, members of a set) are banned in the modules of assets and transforms
and in every module that these import. ``# deterministic: REASON`` at the end of a line allows what it uses.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sda_platform"
# Whose modules make rows; what they import from elsewhere (the lake, its clock, telemetry) is not part of a row.
SUBJECTS = (
    "catalog", "conjunction", "dead_letters", "delivery", "fusion", "ingest", "orbit_determination",
    "ground", "metric_history", "tasking",
    "formats", "orbits",
)  # fmt: skip
_ALLOWED = re.compile(r"#\s*deterministic:(.*)$")

_OF_SPARK = (
    "current_timestamp", "current_date", "curdate", "localtimestamp", "now", "rand", "randn", "random", "randstr",
    "uniform", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name",
)  # fmt: skip
_OF_ROW_ORDER = (
    "first", "last", "first_value", "last_value", "any_value", "collect_list", "collect_set", "array_agg", "mode",
)  # fmt: skip
_FUNCTIONS = "pyspark.sql.functions"
_CLOCKS = {
    *(f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")),
    *(f"time.{name}{ns}" for name in ("time", "monotonic", "perf_counter", "process_time") for ns in ("", "_ns")),
    *(f"time.{name}" for name in ("localtime", "gmtime", "ctime", "strftime")),
}
_CHANCE = {"uuid.uuid1", "uuid.uuid4", "os.urandom"}
_SEEDED = {"random.Random", "numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.SeedSequence"}
_METHODS = {"sample", "randomSplit"}
_KEEP_ANY_ROW = {"dropDuplicates", "drop_duplicates"}
_IN_SQL = re.compile(rf"\b({'|'.join((*_OF_SPARK, *_OF_ROW_ORDER))})\s*\(", re.IGNORECASE)
_SQL = {"expr", "selectExpr", "sql", "filter", "where"}
# Aggregates by name: of pyarrow's groups, and of Spark's `agg` with a dictionary.
_AGGREGATES = {"aggregate", "agg"}
_ORDERED_AGGREGATES = {"first", "last", "list", "distinct", "one", "collect_list", "collect_set", "any_value"}
# What makes any order of its argument's members the same.
_ORDERED = {"sorted", "set", "frozenset", "sum", "min", "max", "any", "all", "len"}
_SORTS_AN_ARRAY = {"sort_array", "array_sort"}
_KEEPS_ORDER = {"list", "tuple", "enumerate", "iter", "next", "zip", "map", "join", "array", "from_pylist", "fromiter"}


@dataclass(frozen=True)
class Offence:
    """What a line must not do."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def row_makers(package: Path = PACKAGE) -> list[Path]:
    """The modules of assets and transforms, and what they import of the subjects, of formats and orbits."""
    begin = [
        path
        for subject in SUBJECTS
        for path in (package / subject).rglob("*.py")
        if path.stem == "transforms" or path.stem.endswith("assets")
    ]
    found: set[Path] = set()
    while begin:
        path = begin.pop()
        if path not in found:
            found.add(path)
            begin += _imported(ast.parse(path.read_text()), package)
    return sorted(found)


def offences(source: str, path: str = "module.py") -> list[Offence]:
    """What in ``source`` depends on more than its input, unless its line gives a reason; and reasons without a use."""
    tree = ast.parse(source)
    lint = _Lint(_aliases(tree))
    lint.visit(tree)
    reasons = {n: m[1].strip() for n, text in enumerate(source.splitlines(), 1) if (m := _ALLOWED.search(text))}
    left = [Offence(path, line, what) for line, what in sorted(set(lint.found)) if not reasons.get(line)]
    used = {line for line, _ in lint.found}
    return left + [
        Offence(path, n, "allows what is not there" if reason else "allows something without a reason")
        for n, reason in reasons.items()
        if n not in used or not reason
    ]


def _imported(tree: ast.Module, package: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                root, *parts = name.split(".")
                path = package.joinpath(*parts).with_suffix(".py") if parts else package
                if root == package.name and parts and parts[0] in SUBJECTS and path.is_file():
                    yield path


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Local names of what is imported, with the dotted name of each."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


class _Lint(ast.NodeVisitor):
    """Collects (line, what) of each offence."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.found: list[tuple[int, str]] = []
        self._aliases = aliases
        self._sets: list[set[str]] = [set()]
        self._excused: set[ast.AST] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # Names that only ever hold sets; one that is assigned anything else is none.
        assigned = [n for n in ast.walk(node) if isinstance(n, ast.Assign | ast.AnnAssign) and n.value is not None]
        named: dict[str, list[bool]] = {}
        for each in assigned:
            for target in _targets(each):
                if isinstance(target, ast.Name):
                    named.setdefault(target.id, []).append(self._is_set(each.value))
        self._sets.append(self._sets[-1] | {name for name, kinds in named.items() if all(kinds)})
        self.generic_visit(node)
        self._sets.pop()

    def visit_Call(self, node: ast.Call) -> None:
        name, method = self._dotted(node.func), _last(node.func)
        if method in _ORDERED | _SORTS_AN_ARRAY:
            self._excuse(node.args)
        if method == "over" and isinstance(node.func, ast.Attribute) and "orderBy" in ast.dump(node):
            self._excuse([node.func.value])
        if node not in self._excused:
            self._check_call(node, name, method)
        if method in _SQL:
            self._check_sql(node)
        if method in _AGGREGATES:
            self._check_aggregates(node)
        if method in _KEEPS_ORDER:
            for argument in node.args:
                self._check_order(argument, node)
        self.generic_visit(node)

    def _check_call(self, node: ast.Call, name: str, method: str) -> None:
        parent, _, function = name.rpartition(".")
        if parent == _FUNCTIONS and function in _OF_SPARK:
            self._add(node, f"{function}() differs from run to run")
        elif parent == _FUNCTIONS and function in _OF_ROW_ORDER:
            self._add(node, f"{function}() depends on the order of rows: sort its result, or use an ordered window")
        elif name in _CLOCKS:
            self._add(node, f"{name}() reads the clock: use the plan's as_of")
        elif name in _CHANCE or name.startswith("secrets."):
            self._add(node, f"{name}() is random: derive ids from content (UUIDv5)")
        elif name in _SEEDED:
            if not node.args and not node.keywords:
                self._add(node, f"{name}() has no seed")
        elif name.startswith(("random.", "numpy.random.")) and not function[:1].isupper():
            self._add(node, f"{name}() is random: use a seeded generator")
        elif method in _METHODS and isinstance(node.func, ast.Attribute):
            self._add(node, f"{method}() draws at random")
        elif method in _KEEP_ANY_ROW and (node.args or node.keywords):
            self._add(node, f"{method}(columns) keeps any row of a key")

    def _check_sql(self, node: ast.Call) -> None:
        for argument in node.args:
            for part in ast.walk(argument):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    for match in _IN_SQL.finditer(part.value):
                        self._add(part, f"{match[1]}() in SQL differs from run to run, or with the order of rows")

    def _check_aggregates(self, node: ast.Call) -> None:
        for part in (part for argument in node.args for part in ast.walk(argument)):
            named = part.elts[1:2] if isinstance(part, ast.Tuple) else part.values if isinstance(part, ast.Dict) else []
            for each in named:
                if isinstance(each, ast.Constant) and each.value in _ORDERED_AGGREGATES:
                    self._add(each, f"the aggregate {each.value!r} depends on the order of rows")

    def visit_For(self, node: ast.For) -> None:
        self._check_order(node.iter, node)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        if node not in self._excused:
            for generator in node.generators:
                self._check_order(generator.iter, node)
        self.generic_visit(node)

    visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815  # names of the visitor's protocol

    def _check_order(self, iterated: ast.expr, at: ast.AST) -> None:
        if self._is_set(iterated) and at not in self._excused:
            self._add(iterated, "the members of a set come in any order: sort them")

    def _is_set(self, node: ast.expr | None) -> bool:
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id in ("set", "frozenset")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
            return self._is_set(node.left)
        return isinstance(node, ast.Name) and node.id in self._sets[-1]

    def _excuse(self, nodes: Sequence[ast.expr]) -> None:
        self._excused |= set(nodes)

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        return self._aliases.get(node.id, "") if isinstance(node, ast.Name) else ""

    def _add(self, node: ast.AST, what: str) -> None:
        self.found.append((getattr(node, "lineno", 0), what))


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
