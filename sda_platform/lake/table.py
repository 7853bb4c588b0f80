"""Declaration of a table: name, schema, key, inputs, and how its rows change over time.

The pandera model is the one place where a table's columns are declared; the Spark schema, the column documentation in
the UI and the contract check are derived from it. This module neither reads nor writes tables.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import pandera.pyspark as pa
import pyarrow as arrow
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from sda_platform.lake.errors import SchemaMismatch
from sda_platform.lake.number_rules import FINITE
from sda_platform.lake.quantities import quantity

COMMIT_SEQUENCE = "commit_sequence"


class TableModel(pa.DataFrameModel):  # type: ignore[type-arg,unused-ignore]
    """Base of every table's model: the columns that the kernel itself fills in."""

    commit_sequence: T.LongType = pa.Field(
        ge=1, description="Sequence number of the commit that wrote the row; version windows select on it."
    )


class Provenance(TableModel):
    """Which record of which sealed segment a row comes from."""

    segment_sha256: T.StringType = pa.Field(
        description="SHA-256 of the sealed segment's bytes; of a defective one, of its zone, name and bytes."
    )
    segment_name: T.StringType = pa.Field(description="Name of the segment in its landing zone.")
    record_number: T.LongType = pa.Field(
        ge=-1, description="Position of the record in its segment, from 0; -1: the segment as a whole."
    )
    received_time_ns: T.LongType = quantity("ns", "When the record reached us, Unix time UTC.")


class MarkedRows(TableModel):
    """What marks the data of a row."""

    classification: T.StringType = pa.Field(
        nullable=True,
        description="U, C, S or another text, as the record or its source states; else the highest of what the row "
        "rests on. Null: unknown.",
    )
    data_mode: T.StringType = pa.Field(
        nullable=True,
        description="REAL, TEST, SIMULATED, EXERCISE, in the same way; several that are not real: all. Null: unknown.",
    )


class LandingColumns(MarkedRows):
    """How a record came to us, and whether it can be used."""

    feed: T.StringType = pa.Field(description="The landing zone.")
    payload: T.BinaryType = pa.Field(nullable=True, description="The record's bytes as they came, with its header.")
    error_kind: T.StringType = pa.Field(nullable=True, description="Why the record is unusable; null: it is usable.")
    error: T.StringType = pa.Field(nullable=True, description="Why, for a person: file, record, reason.")
    segment_format: T.StringType = pa.Field(nullable=True, description="Format of the segment; null: not recorded.")
    source_name: T.StringType = pa.Field(
        nullable=True,
        description="Who brought it to us: source, client, user or part of the platform; null: not recorded.",
    )
    peer: T.StringType = pa.Field(nullable=True, description="Address it came from; null: not known, as of datagrams.")
    reprocess_count: T.LongType = pa.Field(
        nullable=True, ge=1, description="Number of times the record was reprocessed from dead letters; null: none."
    )


class Column(NamedTuple):
    """One declared column: its Spark type, meaning, unit and rules."""

    name: str
    data_type: T.DataType
    nullable: bool
    description: str
    unit: str | None
    rules: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A table of the lake.

    ``key`` identifies a row; ``time_column`` is an instant that follows from the key. A search for the duplicates of
    some rows therefore reads only the files that cover their times. Rows stay as they were written, unless
    ``replaces_rows``: then a commit writes the whole table again, with other rows for some keys. The table as of an
    earlier commit is an old version of it, and a search for duplicates reads the whole key. If it also
    ``keeps_other_files``, a commit rewrites only the files that have a row of such a key. That is for large rows of
    which a commit changes few; the key is one integer.

    Inputs are declared here and nowhere else. Of the tables that it ``consumes`` every commit is consumed once. Tables
    that it ``reads`` are pinned as a snapshot; their commits give it nothing to do. ``feedback`` is consumed as well,
    but declared by a function, since such a table depends on this one and is defined later; Dagster's graph, which is
    acyclic, leaves it out. A bronze table takes the segments of its landing ``zones``.
    If it ``refuses_rows``, those that break the contract are left out of a commit and become dead letters.
    ``lineage`` names the columns that a column copies or derives from: ``{column: [(table, column), …]}``.
    """

    name: str
    group: str
    model: type[TableModel]
    key: tuple[str, ...]
    time_column: str
    lineage: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    replaces_rows: bool = False
    keeps_other_files: bool = False
    consumes: tuple["Table", ...] = ()
    reads: tuple["Table", ...] = ()
    feedback: Callable[[], tuple["Table", ...]] = tuple
    zones: tuple[str, ...] = ()
    refuses_rows: bool = False

    @property
    def consumed(self) -> tuple["Table", ...]:
        """Every table whose commits it consumes, feedback included."""
        return (*self.consumes, *self.feedback())

    @property
    def inputs(self) -> tuple["Table", ...]:
        """Every table that it consumes or reads."""
        return (*self.consumed, *self.reads)

    @property
    def app_id(self) -> str:
        """The constant ``txnAppId`` of every commit to this table."""
        return f"sda.{self.name}"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns, in order."""
        return tuple(self._declared())

    @property
    def bounded_columns(self) -> tuple[str, ...]:
        """The columns whose least and greatest value the log keeps of each file: sequences, times, numbers of objects.

        Text is searched by hashes and ids, of which a file has some from everywhere; measurements are not searched.
        """
        return tuple(c.name for c in self.columns if isinstance(c.data_type, T.IntegralType))

    @cached_property
    def schema(self) -> T.StructType:
        """The Spark schema; descriptions become column comments."""
        return T.StructType(
            [T.StructField(c.name, c.data_type, True, {"comment": c.description}) for c in self.columns]
        )

    @cached_property
    def arrow_schema(self) -> arrow.Schema:
        """The Arrow schema of the same columns."""
        return to_arrow_schema(self.schema)

    @cached_property
    def content_schema(self) -> arrow.Schema:
        """The Arrow schema without the column that a commit adds."""
        return arrow.schema([field for field in self.arrow_schema if field.name != COMMIT_SEQUENCE])

    def check_schema(self, actual: T.StructType) -> None:
        """Raise SchemaMismatch, naming every difference, unless ``actual`` has the declared columns and types."""
        declared = {c.name: c.data_type.simpleString() for c in self.columns if c.name != COMMIT_SEQUENCE}
        found = {f.name: f.dataType.simpleString() for f in actual.fields if f.name != COMMIT_SEQUENCE}
        differences = [
            f"{name}: declared {declared.get(name, 'nothing')}, found {found.get(name, 'nothing')}"
            for name in {**declared, **found}
            if declared.get(name) != found.get(name)
        ]
        if differences:
            raise SchemaMismatch(f"rows for {self.name} differ from its model: " + "; ".join(differences))

    def _declared(self) -> Iterator[Column]:
        for name, column in self.model.to_schema().columns.items():
            facts, is_double = column.metadata or {}, column.dtype.type == T.DoubleType()
            yield Column(
                name,
                column.dtype.type,
                bool(column.nullable),
                column.description or "",
                facts.get("unit"),
                (*column.checks, *([FINITE] if is_double else [])),
            )


def in_flow_order(tables: Iterable[Table]) -> tuple[Table, ...]:
    """``tables``, each after those of them that it consumes or reads; feedback, which closes cycles, does not count."""
    by_name = {table.name: table for table in tables}
    graph = {table.name: [source.name for source in (*table.consumes, *table.reads)] for table in by_name.values()}
    return tuple(by_name[name] for name in TopologicalSorter(graph).static_order() if name in by_name)
