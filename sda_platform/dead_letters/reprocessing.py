"""`sda lake reprocess`: process dead letters again.

The records of the chosen dead letters, byte for byte as received, are sealed into their landing zones and processed as
any other segment. Bytes and names of these segments depend on the dead letters only, and each segment has dead letters
of one commit. A second request therefore makes the same segments, which the zones reject as duplicates. The metadata
has the number of times that the records were reprocessed; fusion fits their windows again even if they are closed.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import groupby
from operator import and_
from typing import Final

import pyarrow.dataset as ds

from sda_platform.dead_letters.rejected import DeadLetterRecord
from sda_platform.dead_letters.tables import DEAD_LETTERS, REFUSING
from sda_platform.formats.cutting import can_be_packed, is_segment_of_itself, pack_segment, segment_header
from sda_platform.formats.registry import format_named
from sda_platform.formats.segments import SegmentMeta, Sender, describe_segment
from sda_platform.lake.admission import BROKEN_CONTRACT
from sda_platform.lake.errors import InvalidRequest, SegmentConflict, SegmentLost
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.consumed import quarantined_name
from sda_platform.landing.decoding import WHOLE_SEGMENT
from sda_platform.landing.segments import RETURNED, LoadedSegment, PendingSegment, defect_of
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.dispositions import RECORD_KINDS

MAX_LETTERS_PER_SEGMENT: Final = 10_000
_REMEMBERED_SEGMENTS: Final = 4
_SHORT_HASH: Final = 12
_COMPUTED: Final = frozenset(table.name for table in REFUSING)


class UnknownSelection(InvalidRequest):
    """A kind or a stage that no dead letter can have; the text names those that there are."""


@dataclass(frozen=True)
class DeadLetterFilter:
    """Which letters to bring back; an empty set and None choose all. Both bounds are inclusive, ns, mission time.

    Raises UnknownSelection: a misspelt name would choose nothing, which reads as "there is nothing to do".
    """

    kinds: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    since_ns: int | None = None
    until_ns: int | None = None

    def __post_init__(self) -> None:
        stages = [table.name for table in DEAD_LETTERS.consumed]
        for noun, chosen, known in (("kind", self.kinds, [*RECORD_KINDS]), ("stage", self.stages, stages)):
            if unknown := sorted(chosen - {*known}):
                raise UnknownSelection(
                    f"no {noun} of dead letters is named {unknown[0]!r}; there are: {', '.join(sorted(known))}"
                )

    @property
    def where(self) -> ds.Expression | None:
        """The part of the selection that columns of every layout can express, so that a reader skips other rows."""
        named = {"error_kind": self.kinds, "stage": self.stages}
        wanted = [ds.field(column).isin(sorted(names)) for column, names in named.items() if names]
        return reduce(and_, wanted) if wanted else None

    def takes(self, letter: DeadLetterRecord) -> bool:
        """Return whether ``letter`` is chosen; a source is a sensor or a landing zone."""
        return (
            (not self.kinds or letter.error_kind in self.kinds)
            and (not self.stages or letter.stage in self.stages)
            and (not self.sources or bool(self.sources & {letter.source, letter.feed}))
            and (self.since_ns is None or letter.rejected_time_ns >= self.since_ns)
            and (self.until_ns is None or letter.rejected_time_ns <= self.until_ns)
        )


@dataclass(frozen=True)
class Return:
    """A segment that goes back, and the letters whose records it holds."""

    name: str
    data: bytes
    meta: SegmentMeta
    letters: tuple[DeadLetterRecord, ...]


@dataclass(frozen=True)
class Skipped:
    """A letter that does not go back, and why."""

    letter: DeadLetterRecord
    reason: str


@dataclass(frozen=True)
class ReprocessReport:
    """How many letters went back now, how many had gone back before, and which did not."""

    reprocessed: int
    had_already: int
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class _Origin:
    """What a letter's records share when they go back together; the order of the fields is that of the segments."""

    feed: str
    commit_sequence: int
    segment_format: str
    header: bytes
    sealed_time_ns: int
    retry_count: int


def returns_of(letters: Iterable[DeadLetterRecord], landing_root: str) -> tuple[list[Return], list[Skipped]]:
    """Return the segments that bring ``letters``, in canonical order, back to the zones below ``landing_root``.

    Of letters with the same bytes the first goes back: the others are repeated deliveries, or earlier returns that
    were refused again.
    """
    returns: list[Return] = []
    skipped: list[Skipped] = []
    groups: dict[_Origin, list[DeadLetterRecord]] = defaultdict(list)
    seen: set[tuple[str, bytes]] = set()
    consumed = _consumed_segments(landing_root)
    for letter in letters:
        is_whole = letter.record_number == WHOLE_SEGMENT
        found: Return | _Origin | str = _whole_segment(letter, consumed) if is_whole else _origin(letter, consumed)
        if isinstance(found, str):
            skipped.append(Skipped(letter, found))
        elif isinstance(found, Return):
            returns.append(found)
        elif (letter.feed, letter.payload or b"") in seen:
            skipped.append(Skipped(letter, "an earlier letter has the same bytes"))
        else:
            seen.add((letter.feed, letter.payload or b""))
            groups[found].append(letter)
    for origin in groups:
        made, left = _segments(origin, groups[origin], partial(_sender, consumed))
        returns += made
        skipped += left
    return returns, skipped


def put_back(returns: Sequence[Return], skipped: Sequence[Skipped], landing_root: str) -> ReprocessReport:
    """Seal the segments into the zones below ``landing_root``; may be repeated after a crash."""
    not_sent, sent, had = list(skipped), 0, 0
    for each in returns:
        try:
            is_new = LandingZone(landing_root, each.meta.feed).seal(each.name, each.data, each.meta)
        except SegmentConflict as conflict:
            not_sent += [Skipped(letter, str(conflict)) for letter in each.letters]
            continue
        sent, had = sent + is_new * len(each.letters), had + (not is_new) * len(each.letters)
    return ReprocessReport(sent, had, tuple(not_sent))


_Consumed = Callable[[str, str, str, bool], LoadedSegment | None]
_SenderOf = Callable[[DeadLetterRecord], Sender | None]


def _consumed_segments(landing_root: str) -> _Consumed:
    """Look up consumed segments by feed, name, hash and whether they are defective."""

    @lru_cache(_REMEMBERED_SEGMENTS)  # letters come in the order of their segments
    def consumed(feed: str, name: str, sha256: str, is_defective: bool) -> LoadedSegment | None:
        known = SegmentRef(feed, name, sha256, 0, int(is_defective), "defective" if is_defective else None)
        try:
            return LandingZone(landing_root, feed).load_consumed(known)
        except SegmentLost:
            return None

    return consumed


def _whole_segment(letter: DeadLetterRecord, consumed: _Consumed) -> Return | str:
    """A quarantined segment goes back as it is if it is what its metadata promises after all."""
    segment = consumed(letter.feed, letter.segment_name, letter.segment_sha256, True)
    if segment is None or segment.meta is None:
        return "its bytes or its metadata are not in quarantine any more"
    defect = defect_of(PendingSegment(segment.zone, segment.name, segment.meta), segment.data)
    if defect:
        return f"still defective: {defect}"
    meta = replace(segment.meta, reprocess_count=letter.retry_count + 1)
    name = segment.name
    if letter.error_kind == "name_conflict":  # its name belongs to other bytes
        name = f"{quarantined_name(name)}.{segment.meta.sha256[:_SHORT_HASH]}"
    return Return(name, segment.data, meta, (letter,))


def _origin(letter: DeadLetterRecord, consumed: _Consumed) -> _Origin | str:
    if letter.stage in _COMPUTED and letter.error_kind == BROKEN_CONTRACT:
        return f"a computed row: {letter.stage} makes it again when its inputs change"
    if letter.error_kind == "torn_record":
        return "torn: the rest of the record is missing"
    segment_format, header = letter.segment_format, b""
    known = format_named(segment_format) if segment_format else None
    if segment_format is None or (known and known.framing.has_header):
        segment = consumed(letter.feed, letter.segment_name, letter.segment_sha256, False)
        if segment is None or segment.meta is None:
            return "its segment, which has format and header, is not in the archive any more"
        segment_format = segment.meta.format
        header, known = segment_header(segment.data, segment_format), format_named(segment_format)
    # Records without a time of their own take the receive time of the segment.
    sealed_ns = 0 if known and known.framing.is_stamped else letter.received_time_ns
    return _Origin(letter.feed, letter.commit_sequence, segment_format, header, sealed_ns, letter.retry_count)


def _sender(consumed: _Consumed, letter: DeadLetterRecord) -> Sender | None:
    """Return who brought the record of ``letter``, with what its segment states of the source; None where it was not
    recorded.
    """
    if letter.source_name is None:
        return None
    segment = consumed(letter.feed, letter.segment_name, letter.segment_sha256, False)
    stated = (segment.meta.origins if segment and segment.meta else None) or ()
    of_source = [run for run in stated if (run.source, run.peer) == (letter.source_name, letter.peer)]
    sender = Sender(letter.source_name, letter.peer)
    facts = ("rank", "classification", "data_mode")
    return replace(sender, **{name: getattr(run, name) for run in of_source[:1] for name in facts})


def _segments(
    origin: _Origin, letters: Sequence[DeadLetterRecord], sender_of: _SenderOf
) -> tuple[list[Return], list[Skipped]]:
    """Segments of the records of ``letters``; one that would harm its neighbours in a segment goes alone."""
    packable = [can_be_packed(each.payload or b"", origin.segment_format, header=origin.header) for each in letters]
    together = [letter for letter, fits in zip(letters, packable, strict=True) if fits]
    returns = []
    for start in range(0, len(together), MAX_LETTERS_PER_SEGMENT):
        portion = together[start : start + MAX_LETTERS_PER_SEGMENT]
        payloads = [letter.payload or b"" for letter in portion]
        received = [letter.received_time_ns for letter in portion]
        data = pack_segment(payloads, received, origin.segment_format, header=origin.header)
        returns.append(_returned(origin, data, portion, sender_of))
    skipped = []
    for letter in (letter for letter, fits in zip(letters, packable, strict=True) if not fits):
        if is_segment_of_itself(letter.payload or b"", origin.segment_format):
            returns.append(_returned(origin, letter.payload or b"", [letter], sender_of))
        else:
            skipped.append(Skipped(letter, f"its bytes are no record of {origin.segment_format} by themselves"))
    return returns, skipped


def _returned(origin: _Origin, data: bytes, letters: Sequence[DeadLetterRecord], sender_of: _SenderOf) -> Return:
    count = origin.retry_count + 1
    meta = describe_segment(
        data,
        feed=origin.feed,
        segment_format=origin.segment_format,
        sealed_time_ns=max(letter.received_time_ns for letter in letters),
        sealed_wall_time_ns=time.time_ns(),
    )
    name = f"{RETURNED}{count}-{hashlib.sha256(data).hexdigest()[:16]}.seg"
    senders = [sender_of(letter) for letter in letters]
    known = [sender for sender in senders if sender is not None]
    origins = None
    if len(known) == len(senders) == meta.records:
        origins = tuple(sender.origin(len(list(run))) for sender, run in groupby(known))
    return Return(name, data, replace(meta, reprocess_count=count, origins=origins), tuple(letters))
