"""Single updates from clients: decoded and tried with SGP4, then committed in groups."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
import pyarrow as pa

from sda_platform.formats.cutting import most_records, split_records
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.segments import Origin, Sender
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import refusal_reasons
from sda_platform.serving import micro_segment
from sda_platform.serving.group_commit import Busy, GroupCommit
from sda_platform.serving.live import LiveCatalogue

MOST_BYTES = 32 * 2**20
"""Bound of one request."""
Landing = Callable[[str, bytes, Sequence[Origin]], int]
_FIELDS = [name for name in ElementSet.__dataclass_fields__ if name in ElementSets.__dataclass_fields__]
_TEXTS = [
    "object_name", "international_designator", "element_set_number", "originator", "classification",
    "revolution_at_epoch", "data_mode", "owner",
]  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """A record that cannot be used: its place in the request, the kind of error and the reason."""

    record: int
    kind: str
    reason: str


def accepted_sets(data: bytes, segment_format: str, now_ns: int) -> tuple[list[ElementSet], list[Refusal]]:
    """Split a request into usable sets and refusals; a bad record does not affect its neighbours."""
    most = most_records(len(data))
    # Counted one by one: decoded, some megabytes of records of two bytes would take gigabytes.
    if len(data) > most and next(islice(split_records(data, segment_format), most, None), None) is not None:
        return [], [Refusal(most, "bad_length", f"{len(data):,} bytes have more than {most:,} records")]
    rows = decode_element_sets(data, segment_format=segment_format)
    kinds, reasons = rows.column("error_kind").to_pylist(), rows.column("error").to_pylist()
    refused = [Refusal(n, kind, reason) for n, (kind, reason) in enumerate(zip(kinds, reasons, strict=True)) if kind]
    usable = np.flatnonzero([kind is None for kind in kinds])
    sound = rows.take(pa.array(usable, pa.int64()))
    columns = {name: sound.column(name).to_pylist() for name in (*_FIELDS, *_TEXTS)}
    verdicts = refusal_reasons(ElementSets.from_columns(columns), now_ns)
    sets = []
    for place, (number, verdict) in enumerate(zip(usable.tolist(), verdicts, strict=True)):
        if verdict:
            refused.append(Refusal(number, "propagation_refused", verdict))
        else:
            sets.append(ElementSet(**{name: values[place] for name, values in columns.items()}))
    return sets, sorted(refused, key=lambda each: each.record)


class Puts:
    """Takes single updates for a live catalogue.

    ``land`` makes a segment durable under a name, with its origins, and returns the mission time of its sealing. Bytes
    that it has or had before change nothing. Sets rank by the client that sends them, never by their originator.
    """

    def __init__(self, live: LiveCatalogue, land: Landing) -> None:
        self._live, self._land = live, land
        self._group = GroupCommit(self._seal)

    def put(self, sets: list[ElementSet], sender: Sender) -> Future[None]:
        """Make sets durable; the future ends when they are also served. Raises Busy."""
        if self._live.pending.is_full:
            raise Busy("too many acknowledged sets wait for the platform; is it running?")
        return self._group.put([(each, sender) for each in sets])

    def close(self) -> None:
        """Commit what waits, then end."""
        self._group.close()

    def _seal(self, sets: Sequence[tuple[ElementSet, Sender]]) -> Callable[[], None]:
        data = micro_segment.encode(each for each, _ in sets)
        origins = [sender.origin(len(list(run))) for sender, run in groupby(sender for _, sender in sets)]
        received_time_ns = self._land(micro_segment.segment_name(data), data, origins)
        rows = micro_segment.rows(data, received_time_ns=received_time_ns, origins=origins)
        return lambda: self._live.take(rows.column("segment_sha256")[0].as_py(), rows)
