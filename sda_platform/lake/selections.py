"""Which rows of a stored table a transform reads: one declaration for Arrow, which reads files, and for Spark."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from typing_extensions import override

from sda_platform.lake.arrow_frames import frame_of
from sda_platform.lake.time_spans import time_spans


class Selection(ABC):
    """A condition on rows; file statistics prune by it."""

    @abstractmethod
    def expression(self) -> ds.Expression:
        """The condition as Arrow takes it."""

    @abstractmethod
    def column(self) -> Column:
        """The condition as Spark takes it."""

    def of(self, frame: DataFrame) -> DataFrame:
        """Select the rows of ``frame``."""
        return frame.where(self.column())

    def __or__(self, other: "Selection") -> "Selection":
        return AnyOf((self, other))

    def __and__(self, other: "Selection") -> "Selection":
        return AllOf((self, other))


@dataclass(frozen=True)
class OneOf(Selection):
    """Rows whose column ``name`` has one of ``values``."""

    name: str
    values: pa.Array

    @override
    def expression(self) -> ds.Expression:
        return ds.field(self.name).isin(self.values)

    @override
    def column(self) -> Column:
        return F.col(self.name).isin(self.values.to_pylist())

    @override
    def of(self, frame: DataFrame) -> DataFrame:
        """Select by a join: thousands of values would be a long expression."""
        wanted = frame_of(frame.sparkSession, pa.table({self.name: self.values}))
        return frame.join(F.broadcast(wanted), self.name, "left_semi")


@dataclass(frozen=True)
class Near(Selection):
    """Rows in whose files duplicates of rows at ``times`` (ns) can be, by column ``name``; null ones if a time is."""

    name: str
    times: pa.ChunkedArray

    @override
    def expression(self) -> ds.Expression:
        time = ds.field(self.name)
        parts = [(time >= first) & (time <= last) for first, last in time_spans(self.times)]
        parts += [time.is_null()] if self.times.null_count else []
        return reduce(or_, parts) if parts else pc.scalar(False)

    @override
    def column(self) -> Column:
        time = F.col(self.name)
        parts = [time.between(F.lit(first), F.lit(last)) for first, last in time_spans(self.times)]
        parts += [time.isNull()] if self.times.null_count else []
        return reduce(or_, parts, F.lit(False))


@dataclass(frozen=True)
class Above(Selection):
    """Rows whose column ``name`` is greater than ``least``, and not greater than ``most`` if that is given."""

    name: str
    least: Any
    most: Any = None

    @override
    def expression(self) -> ds.Expression:
        found = ds.field(self.name) > self.least
        return found if self.most is None else found & (ds.field(self.name) <= self.most)

    @override
    def column(self) -> Column:
        found = F.col(self.name) > F.lit(self.least)
        return found if self.most is None else found & (F.col(self.name) <= F.lit(self.most))


@dataclass(frozen=True)
class NotNull(Selection):
    """Rows whose column ``name`` has a value."""

    name: str

    @override
    def expression(self) -> ds.Expression:
        return ds.field(self.name).is_valid()

    @override
    def column(self) -> Column:
        return F.col(self.name).isNotNull()


@dataclass(frozen=True)
class AnyOf(Selection):
    """Rows that one of ``parts`` selects."""

    parts: tuple[Selection, ...]

    @override
    def expression(self) -> ds.Expression:
        return reduce(or_, (part.expression() for part in self.parts))

    @override
    def column(self) -> Column:
        return reduce(or_, (part.column() for part in self.parts))


@dataclass(frozen=True)
class AllOf(Selection):
    """Rows that each of ``parts`` selects."""

    parts: tuple[Selection, ...]

    @override
    def expression(self) -> ds.Expression:
        return reduce(and_, (part.expression() for part in self.parts))

    @override
    def column(self) -> Column:
        return reduce(and_, (part.column() for part in self.parts))

    @override
    def of(self, frame: DataFrame) -> DataFrame:
        return reduce(lambda rows, part: part.of(rows), self.parts, frame)
