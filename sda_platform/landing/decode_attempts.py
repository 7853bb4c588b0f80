"""DecodeAttempts of a batch: a segment at which the decoding process is killed must not stop the segments after it.

An exception of the decoder is isolated at once (`decoding`). A killed process leaves no exception, and the next run
takes the same batch, oldest first. So each run opens a note before it decodes a batch and closes it afterwards. An
open note means that its process was killed, unless the process still runs or the machine was restarted (`owners`).
From the second kill on, each one halves the batch. A segment is refused if three processes that decoded it alone were
killed: two may be chance, when processes are also killed for other reasons. After a success the batch grows again.

A closed note names the sources of sound records, which have whole turns in the next batch (`intake.in_turns`).

The note is not synced: without it, a run decodes the whole batch once more, and no source counts as sound.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from upath import UPath

from sda_platform.landing.listing import bytes_at
from sda_platform.landing.owners import Owners
from sda_platform.landing.segments import UNDECODABLE, LoadedSegment

_MOST_KILLS = 2
_MOST_KILLS_ALONE = 3
_LARGEST_LIMIT = 2**12


@dataclass(frozen=True)
class DecodeAttempts:
    """How earlier runs fared: ``kills`` in succession, ``alone`` of them at the one segment ``only``, and the most
    segments of the next batch (None: as many as there are). ``owner`` is the process that decodes while it is open.
    Of ``sound_sources`` the last batch had records, and hardly any that could not be read."""

    limit: int | None = None
    kills: int = 0
    alone: int = 0
    only: str = ""
    tried: int = 0
    is_open: bool = False
    owner: str = ""
    sound_sources: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: UPath, owners: Owners) -> "DecodeAttempts":
        """Read the note at ``path``; a torn note, or one of another version, counts as absent."""
        try:
            facts = json.loads(bytes_at(path) or b"{}")
            found = cls(**{**facts, "sound_sources": tuple(facts.get("sound_sources", ()))})
        except (AttributeError, TypeError, ValueError):
            return cls()
        return found._after_a_death() if found.is_open and owners.has_ended(found.owner) else found

    def bounded(self, max_segments: int) -> int:
        """Return how many segments the next batch may have."""
        return max_segments if self.limit is None else min(self.limit, max_segments)

    def judged(self, segments: Sequence[LoadedSegment]) -> list[LoadedSegment]:
        """``segments``, with a segment refused if too many processes were killed while they decoded it alone."""
        judged = []
        for segment in segments:
            is_condemned = self.alone >= _MOST_KILLS_ALONE and segment.defect is None and _mark(segment) == self.only
            why = f"{segment.name}: {UNDECODABLE} its process being killed, {self.alone} times at this segment alone"
            judged.append(segment.refused(why) if is_condemned else segment)
        return judged

    def begin(self, path: UPath, segments: Sequence[LoadedSegment], owner: str) -> "DecodeAttempts":
        """Note that ``owner`` is about to decode ``segments``; returns what is noted."""
        sound = [segment for segment in segments if segment.defect is None]
        only = _mark(sound[0]) if len(sound) == 1 else ""
        alone = self.alone if only and only == self.only else 0
        begun = replace(self, is_open=True, owner=owner, tried=len(segments), only=only, alone=alone)
        begun._save(path)
        return begun

    def end(self, path: UPath, sound_sources: Iterable[str] = ()) -> None:
        """Note that they were decoded: the next batch may be twice as large. ``sound_sources``: see the class."""
        limit = None if self.limit is None or self.limit >= _LARGEST_LIMIT else 2 * self.limit
        DecodeAttempts(limit, sound_sources=tuple(sorted(sound_sources)))._save(path)

    def _after_a_death(self) -> "DecodeAttempts":
        kills = self.kills + 1
        is_whole_batch = kills < _MOST_KILLS and self.limit is None
        limit = None if is_whole_batch else max(1, self.tried // 2)
        return replace(self, is_open=False, kills=kills, limit=limit, alone=self.alone + 1 if self.only else 0)

    def _save(self, path: UPath) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(json.dumps(asdict(self)).encode())


def _mark(segment: LoadedSegment) -> str:
    return f"{segment.zone}/{segment.name}@{segment.sha256}"
