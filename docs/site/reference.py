"""The reference pages as Markdown, derived from the code: commands, settings, tables, orchestration and formats.

`make docs` runs this file as a script, which writes the pages. A test fails while they are not current.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard, get_args

import click
import dagster as dg

from sda_platform.cli.grammar import MOMENT
from sda_platform.cli.listing import FORMS as FORMS_OF_LISTS
from sda_platform.cli.main import main
from sda_platform.definitions import defs
from sda_platform.edge.address import Address
from sda_platform.edge.config import DescribedConfig, ServiceConfig
from sda_platform.formats.conversion import targets_of
from sda_platform.formats.format import Format
from sda_platform.formats.framing.container import MAX_PAYLOAD_BYTES, RECORD_HEADER
from sda_platform.formats.registry import FORMATS
from sda_platform.history.query_views import QUERY_VIEWS
from sda_platform.lake.correction_log import CorrectionLogModel
from sda_platform.lake.table import Column, Table
from sda_platform.observability.vitals.evaluation import VITALS
from sda_platform.registry import TABLES
from sda_platform.setting_fields import OTHER_VARIABLES, SHOWN_DEFAULT
from sda_platform.settings import declared_settings
from sda_platform.spark.session import POOL_TAG
from sda_platform_tests.support import sockets
from sda_platform_tests.support.fault_matrix import CASES


def cli() -> str:
    """Every command of `sda` with its arguments and options."""
    top = click.Context(main, info_name="sda")
    parts = [
        "# Commands\n",
        (
            f"{cleandoc(main.help or '')} `sda COMMAND --help` says more. `--json` prints JSON. Lists have "
            "`--format table|json|csv` too; `--json` and `--csv` are short for it. An ALERT is an id or its beginning. "
            "Exit code 0: done; 1: a failure that you can correct, or a finding; 2: a wrong use. "
            "`--as-of` and moments have [these forms](../how-to/query-the-past.md#one-state-of-all-tables). "
            "Options of `sda` itself:\n"
        ),
        _options(main.params),
        "## Options of several commands\n",
        "Each command names those that it has.\n",
        "".join(_common_options()),
        *_commands(top, level=2),
    ]
    return "\n".join(parts)


def settings() -> str:
    """Every environment variable of the platform with its type, default and meaning."""
    declared = {variable: (path, field) for variable, path, field in declared_settings()}
    sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for variable, (path, field) in declared.items():
        default = _default(field)
        kind = "" if field.annotation in _EVIDENT_TYPES else f" {_type_name(field.annotation)}"
        name = f"`{variable}`{kind}{f' ({default})' if default else ''}"
        sections[path[0] if len(path) > 1 else "platform"].append(
            (name, _UNIT_IN_NAME.sub(".", field.description or "").replace("; empty: none.", "."))
        )
    others = [(f"`{name}`", meaning) for name, meaning in sorted(OTHER_VARIABLES.items())]
    return (
        "# Settings\n\nWhat you can set, by subject: environment variables with their defaults. Units end the name. "
        "A variable with the prefix that is no setting is refused.\n\n"
        + "\n".join(f"## {name.replace('_', ' ').capitalize()}\n\n{_lines(rows)}" for name, rows in sections.items())
        + "\n## Other variables\n\n"
        + _lines(others)
    )


def tables() -> str:
    """Every table with its key, inputs and columns; what several tables share is stated once."""
    by_rows = {kind: ", ".join(f"[`{t.name}`](#{t.name})" for t in TABLES if _rows(t) == kind) for kind in _KINDS}
    parts = (
        "# Tables\n",
        "Each table is listed after the tables that it consumes or reads. Its asset's page in the UI says more.\n",
        "## How rows change\n",
        _grid(("Rows", "A commit", "Tables"), [(f"**{kind}**", _KINDS[kind], by_rows[kind]) for kind in _KINDS]),
        "## Columns\n",
        _COLUMNS.format(landed=_code(sorted(_LANDED - _EVERYWHERE)), corrected=_code(sorted(_CORRECTED - _EVERYWHERE))),
        _columns(_SHARED),
    )
    return "\n".join((*parts, *(_table(table) for table in TABLES), _views()))


def _views() -> str:
    """Every view of `sda query` with its columns."""
    parts = [
        "## Views\n",
        "`sda query` and `sda lake sql` have these views beside the tables; on Spark a view is `active_alerts`.",
    ]
    for view in QUERY_VIEWS:
        read = ", ".join(f"[`{table.name}`](#{table.name})" for table in view.tables)
        known = {column.name for table in view.tables for column in table.columns}
        same = _code(name for name, _, _ in view.columns if name in known)
        own = [(f"`{name}`", meaning) for name, _, meaning in view.columns if name not in known]
        parts += [f"\n### {view.schema}.{view.name}\n", f"{view.meaning} As in {read}: {same}; and:\n", _lines(own)]
    return "\n".join(parts)


def orchestration() -> str:
    """Every job, sensor, schedule and asset check of the Dagster code location."""
    repository = defs.get_repository_def()
    jobs = [
        (f"`{job.name}` ({({**job.tags, **job.run_tags}).get(POOL_TAG, 'no pool')})", job.description)
        for job in repository.get_all_jobs()
        if not job.name.startswith(("__", "audit_"))
    ]
    sensors = [
        (f"`{each.name}`", each.description)
        for each in repository.sensor_defs
        if not each.name.endswith((_LANDING, _UNCONSUMED))
    ]
    landing = [
        f"`{job}` ({zones})"
        for job, zones in sorted(
            (each.name.removesuffix(_LANDING), (each.description or "").partition("landing/")[2].rstrip("."))
            for each in repository.sensor_defs
            if each.name.endswith(_LANDING)
        )
    ]
    waiting = [
        each.name.removesuffix(_UNCONSUMED) for each in repository.sensor_defs if each.name.endswith(_UNCONSUMED)
    ]
    sensors += [
        (f"`JOB{_LANDING}`", f"Starts a run when sealed segments wait in the landing zones of {', '.join(landing)}."),
        (
            f"`JOB{_UNCONSUMED}`",
            f"Starts a run if tables of {_code(waiting)} have unconsumed commits and none is coming.",
        ),
    ]
    schedules = [(f"`{each.name}` (`{each.cron_schedule}`)", each.description) for each in repository.schedule_defs]
    assets_of: dict[tuple[str, bool, str], list[str]] = defaultdict(list)
    for spec in _check_specs():
        asset = spec.asset_key.to_user_string()
        if asset not in _ELSEWHERE and not asset.startswith("audit/") and spec.name != _FRESH:
            assets_of[spec.name, spec.blocking, spec.description or ""].append(asset)
    checks = [
        (
            f"`{name}`{' (blocks)' if is_blocking else ''} of {_assets(names)}",
            meaning,
        )
        for (name, is_blocking, meaning), names in sorted(assets_of.items(), key=lambda each: (-len(each[1]), each[1]))
    ]
    return "\n".join(
        (
            "# Jobs, sensors and checks\n",
            "## Jobs\n",
            (
                "The runs of one pool exclude each other; a job without a pool excludes none. Each "
                "[audit](../how-to/watch-the-platform.md#audits) has a job `audit_NAME`, too.\n"
            ),
            _lines(jobs),
            "## Sensors\n",
            _lines(sensors),
            "## Schedules\n",
            _lines(schedules),
            "## Checks\n",
            _CHECKS,
            _lines(checks),
        )
    )


def formats() -> str:
    """Every file format that the platform lands."""
    parts = [
        "# File formats\n",
        (
            "What [`sda land`](../how-to/land-files.md), collectors and uploads read, by landing zone. `sda convert` "
            "writes the content of a file in the other formats named after it.\n"
        ),
    ]
    for zone in dict.fromkeys(each.zone for each in FORMATS):
        rows = [
            (f"`{each.name}` ({' '.join(f'`{suffix}`' for suffix in each.suffixes)})", f"{each.title}{_targets(each)}")
            for each in FORMATS
            if each.zone == zone
        ]
        parts += [f"## landing/{zone}\n", _lines(rows)]
    return "\n".join(
        (
            *parts,
            "## The container of binary frames\n",
            (
                "A container is a sequence of frames to the end of the file, "
                "little-endian without padding. Each frame follows a header of 12 bytes.\n"
            ),
            _grid(
                ("Offset", "Field", "Type"),
                (
                    ("0", f"length of the frame in bytes, at most {MAX_PAYLOAD_BYTES:,}", "u32"),
                    ("4", "time of reception, ns since 1970 UTC", "u64"),
                    (str(RECORD_HEADER.size), "the frame", "bytes"),
                ),
            ),
        )
    )


def _targets(source: Format) -> str:
    """What `sda convert` makes of a format."""
    others = ", ".join(f"`{target}`" for target in targets_of(source.name) if target != source.name)
    return f" → {others}" if others else ""


def collectors() -> str:
    """Every key of the collector's configuration, by kind of source, and the formats of each landing zone."""
    sections: list[tuple[str, str, Any]] = [("`[collector]`", "Keys of the whole process.", ServiceConfig)]
    for model in get_args(get_args(DescribedConfig)[0]):
        kinds = ", ".join(f"`{kind}`" for kind in get_args(model.model_fields["kind"].annotation))
        sections.append((f"kind = {kinds}", model.__doc__ or "", model))
    keys = {title: _keys(model) for title, _, model in sections}
    found = Counter(line for lines in keys.values() for line in lines)
    shared = {line: name for lines in keys.values() for line, name in lines.items() if found[line] > 1}
    parts = [
        "# Keys of the collector\n",
        "`<home>/collect.toml` has a section `[collector]`, and a section `[sources.<name>]` for each source.",
        "A name has up to 40 lower-case letters, digits and hyphens.",
        "[Run collectors](../how-to/run-collectors.md) has an example.\n",
        "## Keys of several kinds\n",
        _lines(shared),
    ]
    for title, meaning, _ in sections:
        common = _code(name for line, name in keys[title].items() if line in shared)
        also = f" Also {common}." if common else ""
        own = [line for line in keys[title] if line not in shared]
        parts += [f"## {title}\n", f"{' '.join(meaning.split())}{also}\n", *([_lines(own)] if own else [])]
    parts.append(
        "An upload names the zone, and the [format](formats.md) where the file's name does not determine it.\n"
    )
    return "\n".join(parts)


def _keys(model: Any) -> dict[tuple[str, str], str]:
    """The line of each key of a kind of source, with its name."""
    return {
        (
            f"`{name}`{_key_type(field)} ({'required' if field.is_required() else _default(field) or 'none'})",
            field.description,
        ): name
        for name, field in model.model_fields.items()
        if name != "kind"
    }


def vitals() -> str:
    """The runbook of every vital."""
    sections = (
        f"## {vital.name}\n\n"
        + "".join(f"- {condition}\n" for condition in vital.red_when.split("; "))
        + f"\nSide at fault: {', '.join(dict.fromkeys(each.side for each in CASES if each.vital == vital.name))}. "
        f"**What to do.** {vital.remedy}\n"
        for vital in VITALS
    )
    return (
        "# Vitals\n\nA vital is red when a condition of its list holds. Below are the side at fault and what to do. "
        "[A notice](../how-to/watch-the-platform.md#notices) names the section of its vital. It comes with the "
        "first evaluation after the stated time, every 20 s. A test lets the faults of "
        "`sda_platform_tests/support/fault_matrix.py` happen.\n\n" + "\n".join(sections)
    )


def threat_model() -> str:
    """The page as people wrote it, with the table of what each listener answers."""
    written, heading, _ = (Path(__file__).parents[1] / "explanation/threat-model.md").read_text().partition(_SOCKETS)
    return f"{written}{heading}{sockets.as_markdown()}\n"


_SOCKETS = "## Every socket, without and with its credential\n\nA test opens each of these and writes this table.\n\n"
PAGES: Mapping[str, Callable[[], str]] = {
    "reference/cli.md": cli,
    "reference/settings.md": settings,
    "reference/tables.md": tables,
    "reference/orchestration.md": orchestration,
    "reference/formats.md": formats,
    "reference/collectors.md": collectors,
    "reference/vitals.md": vitals,
    "explanation/threat-model.md": threat_model,
}
"""Page below docs/ → the function that writes it."""


def _check_specs() -> Iterator[dg.AssetCheckSpec]:
    for checks in defs.asset_checks or ():
        if isinstance(checks, dg.AssetChecksDefinition):
            yield from checks.check_specs
    for assets in defs.assets or ():
        if isinstance(assets, dg.AssetsDefinition):
            yield from assets.check_specs


def _table(table: Table) -> str:
    spec = _SPECS.get(table.name)
    common = _EVERYWHERE | (_LANDED if table.zones else set())
    common |= _CORRECTED if issubclass(table.model, CorrectionLogModel) else set()
    shared = [c.name for c in table.columns if _meaning(c) in _SHARED]
    facts = [
        ("Key", _code(table.key) if table.key != _RECORD else ""),
        ("Consumes", _names(table.consumes)),
        ("Reads", _names(table.reads)),
        ("Feedback", _names(table.feedback())),
        ("Zones", _code(f"landing/{zone}" for zone in table.zones)),
        ("[Shared](#columns)", _code(name for name in shared if name not in common)),
    ]
    own = {_meaning(c): c.nullable for c in table.columns if c.name not in shared}
    return "\n".join(
        (
            f"## {table.name}\n",
            f"{((spec and spec.description) or '').partition(_PARAGRAPH)[0]}\n",
            "".join(f"- {name}: {value}\n" for name, value in facts if value),
            _columns(own),
        )
    )


def _meaning(column: Column) -> tuple[str, str, str, str]:
    """What tables must agree on to share a column: name, type, unit and meaning."""
    meaning = _TRIANGLE.sub("", column.description.replace(", Unix time UTC", ""))
    return column.name, column.data_type.simpleString(), column.unit or "", meaning


def _columns(columns: Mapping[tuple[str, str, str, str], bool]) -> str:
    """A line for each column, with whether it may be null; the columns of a pair, or of three axes, have one line."""
    rows: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    for (name, kind, unit, meaning), is_nullable in columns.items():
        is_in_name = name.endswith(f"_{unit.replace('/', '_')}")
        shown = (
            f"{'' if kind == _usual_type(name, unit) else f' `{kind}`'}{f' {unit}' if unit and not is_in_name else ''}"
        )
        of_null = "?" if is_nullable else ""
        first = re.sub(r"^(v?)[yz](?=_)", r"\1x", re.sub(r"_2(?=_|$)", "_1", name))
        of_first = next((key for key in rows if key[:2] == (first, shown)), None) if first != name else None
        listed = f"`{name}`{of_null}"
        if of_first:
            rows[of_first] = (f"{rows[of_first][0]}, {listed}", *rows[of_first][1:])
        else:
            rows[name, shown, meaning] = (listed, shown, meaning.replace(" x, TEME", ", TEME"))
    return _lines((f"{names}{kind}", meaning) for names, kind, meaning in rows.values())


def _usual_type(name: str, unit: str) -> str:
    if name.endswith("_ns"):
        return "bigint"
    return "double" if unit else "boolean" if name.startswith("is_") else "string"


def _shared() -> dict[tuple[str, str, str, str], bool]:
    """The columns that several tables have, by name, each with whether it may be null in one of them.

    Of a name with several meanings the most frequent one is shared.
    """
    found: dict[tuple[str, str, str, str], list[bool]] = defaultdict(list)
    for column in (column for table in TABLES for column in table.columns):
        found[_meaning(column)].append(column.nullable)
    by_name = {key[0]: key for key in sorted(found, key=lambda key: len(found[key]))}
    return {key: any(found[key]) for _, key in sorted(by_name.items()) if len(found[key]) > 1}


def _columns_of_all(tables: Iterable[Table]) -> set[str]:
    return set.intersection(*({column.name for column in table.columns} for table in tables))


_TRIANGLE = re.compile(r", lower triangle by rows \(\d+ terms\)")
_SHARED = _shared()
_EVERYWHERE = _columns_of_all(TABLES)
_RECORD = ("segment_sha256", "record_number")
_LANDED = _columns_of_all(table for table in TABLES if table.zones)
_CORRECTED = _columns_of_all(table for table in TABLES if issubclass(table.model, CorrectionLogModel))


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_LANDING, _UNCONSUMED = "_landing", "_unconsumed"
# Of settings whose names end with it: `_S`, `_H`, `_KM`.
_UNIT_IN_NAME = re.compile(r", (seconds|hours|km)\.$")
_EVIDENT_TYPES = (str, int, float, bool, Path)
_ELSEWHERE = ("platform/vitals", "platform/service_levels")
_FRESH = "data_is_fresh"
_PARAGRAPH = "\n\n"
# Where names of types are from, which differs by the version of Python.
_MODULES = re.compile(r"\b(?:typing|pathlib(?:\._local)?)\.")


def _assets(names: list[str]) -> str:
    """The assets of a check: every table, or their names."""
    tables, landing = ({t.name for t in TABLES}, {t.name for t in TABLES if t.zones})
    if set(names) in (tables, landing):
        return "every table" if set(names) == tables else "every table with landing zones"
    return _code(names)


_COLUMNS = (
    "- Units end the name, or follow it. `?` marks a column that may be null. Times are Unix time UTC.\n"
    "- Types that are not stated: `bigint` of `…_ns`, `double` with a unit, `boolean` of `is_…`, else `string`.\n"
    "- A covariance is the lower triangle by rows. In pairs, `_1` is of the primary, `_2` of the secondary.\n"
    "- Every table has `commit_sequence`. Those with landing zones have the columns of landed records: {landed}; "
    "correction logs have {corrected}.\n"
    "- A table without a stated key has one row for each `segment_sha256` and `record_number`.\n\n"
    "Each table names which of these shared columns it has:\n"
)
_CHECKS = (
    "A blocking check that fails ends the run before the next asset. [What to do](../how-to/operate.md#checks). "
    "Not listed are those of [vitals](vitals.md), [service levels](../how-to/watch-the-platform.md#service-levels) and "
    "audits, and `data_is_fresh` of each table: by the mission clock, inputs are consumed or arrive.\n"
)
_KINDS: Mapping[str, str] = {
    "appended": "adds rows, which never change; a key occurs once",
    "correction log": "adds inserts and retracts, with a revision for each entry of a key; "
    "a row holds now if the last entry of its key is an insert",
    "one per key, replaced": "writes the whole table again; rows that do not change keep their `commit_sequence`",
    "one per key, replaced in part": "writes the files again that have a row of a changed key; other files stay",
}
"""How the rows of a table change → what a commit does."""


def _rows(table: Table) -> str:
    appended, log, replaced, replaced_in_part = _KINDS
    if table.replaces_rows:
        return replaced_in_part if table.keeps_other_files else replaced
    return log if issubclass(table.model, CorrectionLogModel) else appended


def _commands(parent: click.Context, level: int) -> Iterator[str]:
    """Each command of a group with its options, then its own commands one level below."""
    group = parent.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(parent):
        command = group.commands[name]
        context = click.Context(command, parent=parent, info_name=name)
        yield f"{'#' * level} {context.command_path}\n"
        arguments = [piece for piece in command.collect_usage_pieces(context) if piece not in _NO_ARGUMENTS]
        forms = {each.opts[0] for each in command.params} & _FORMS
        arguments += [f"[{'--format' if forms == _FORMS else '--json'}]"] if "--json" in forms else []
        usage = f"`{' '.join(arguments)}`: " if arguments else ""
        yield f"{usage}{_brief(cleandoc(command.help or '').partition(_PARAGRAPH)[0])}\n"
        if options := _options(command.params, _common_options()):
            yield options
        if isinstance(command, click.Group):
            yield from _commands(context, level + 1)


_SPECS = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(f"[`{table.name}`](#{table.name})" for table in tables)


_NO_ARGUMENTS = ("[OPTIONS]", "COMMAND [ARGS]...")
_FORMS = {"--json", "--format"}
_FLAGS = ("--json", "--csv")


def _options(parameters: Iterable[click.Parameter], common: Mapping[str, str] = MappingProxyType({})) -> str:
    """Each option with its value, its default and what it does; the names of those that are ``common``."""
    lines = [_option(each) for each in parameters if _is_listed(each)]
    also = [common[line] for line in lines if line in common]
    own = "".join(line for line in lines if line not in common)
    return (f"{own}- {_code(also)}\n") if also else own


def _option(each: click.Option) -> str:
    kind = "" if each.is_flag else each.type.name.removesuffix(" range")
    value = "|".join(map(str, each.type.choices)) if isinstance(each.type, click.Choice) else kind.upper()
    names = ", ".join((*each.opts, *each.secondary_opts))
    default = f" (default {each.default})" if each.show_default and each.default is not None else ""
    state = " (required)" if each.required else default
    meaning = f": {_brief(each.help)}" if each.help else ""
    return f"- `{f'{names} {value}'.strip()}`{state}{meaning}\n"


def _is_listed(option: click.Parameter) -> TypeGuard[click.Option]:
    return isinstance(option, click.Option) and option.opts[0] not in _FLAGS and not _is_form_of_a_list(option)


@cache
def _common_options() -> Mapping[str, str]:
    """The lines of options that several commands have alike → the option."""
    found = Counter(_option(each) for each in _parameters(main) if _is_listed(each))
    names = {_option(each): each.opts[0] for each in _parameters(main) if _is_listed(each)}
    meanings = Counter(names.values())
    return {line: name for line, name in sorted(names.items()) if found[line] > 2 or found[line] > meanings[name]}


def _parameters(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from _parameters(each)


def _is_form_of_a_list(option: click.Option) -> bool:
    return isinstance(option.type, click.Choice) and tuple(option.type.choices) == FORMS_OF_LISTS


def _brief(meaning: str) -> str:
    """A help text without what the page's first paragraph states once."""
    return meaning.replace(" (an id or its beginning)", "").replace(f": {MOMENT}", "")


def _type_name(annotation: Any) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return f"`{_MODULES.sub('', name)}`"


def _key_type(field: Any) -> str:
    """The type of a key, where its default does not show it."""
    annotation = field.annotation
    if annotation is Address:
        return " `host:port`"
    choices = get_args(annotation)
    if choices and all(isinstance(each, str) for each in choices):
        names = ", ".join(f'`"{each}"`' for each in choices)
        return f" {names}"
    return "" if annotation in _EVIDENT_TYPES else f" {_type_name(annotation)}"


def _default(field: Any) -> str:
    if shown := (field.json_schema_extra or {}).get(SHOWN_DEFAULT):
        return str(shown)
    return f"`{field.default}`" if field.default not in ("", None) else ""


def _grid(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [tuple(header)]
    lines += [("---",) * len(lines[0]), *(tuple(_cell(value) for value in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_pages() -> None:
    """Write every page below docs/."""
    for path, text in PAGES.items():
        (Path(__file__).parents[1] / path).write_text(text())


def _lines(rows: Iterable[tuple[str, Any]]) -> str:
    """A list: each name with its meaning."""
    return "".join(f"- {name}: {' '.join(str(meaning or '').split())}\n" for name, meaning in rows)


def _cell(value: Any) -> str:
    return " ".join(str(value if value is not None else "").split()).replace("|", "\\|")


if __name__ == "__main__":
    write_pages()
