"""The files of a table's log by the version they belong to, and which of those that Delta derives can be read."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from upath import UPath

from sda_platform.lake import delta_log
from sda_platform.lake.storage import text_of
from sda_platform.recovery.file_content import ContentDamaged, rows_by_footer

# Of a version: the commit, its checksum as Delta and as Hadoop (hidden) keep it, Delta's checkpoint.
_VERSIONED = re.compile(r"^\.?(\d{20})\.(json|crc|checkpoint\..*parquet)(\.crc)?$")
# Where only the newest files are looked for, a version that is missing shows by one of so many after it.
_LOOKED_BEYOND = 10


@dataclass(frozen=True)
class LogFiles:
    """The versions that have a commit file, and the names of all other files with their versions."""

    directory: UPath
    commits: frozenset[int]
    others: dict[str, int]
    has_pointer: bool

    @classmethod
    def listed(cls, uri: str) -> "LogFiles":
        """All files of the log of the table at ``uri``; takes the longer the more commits it has."""
        directory = delta_log.log_directory(uri)
        names = list(_names(directory))
        versions = {name: int(found[1]) for name in names if (found := _VERSIONED.match(name))}
        return cls(
            directory,
            frozenset(version for name, version in versions.items() if name.endswith(".json")),
            {name: version for name, version in versions.items() if not name.endswith(".json")},
            delta_log.LAST_CHECKPOINT in names,
        )

    @classmethod
    def newest(cls, uri: str) -> "LogFiles":
        """Return the commits from Delta's newest checkpoint on, found by their names: the cost does not grow with the
        log.

        All files are listed where there is no such checkpoint.
        """
        base, last = delta_log.checkpointed_version(uri), delta_log.newest_version(uri)
        if not 0 <= base <= last:
            return cls.listed(uri)
        # Downwards: a commit that is made meanwhile must not look like one after a gap.
        looked_for = range(last + _LOOKED_BEYOND, base - 1, -1)
        found = frozenset(filter(delta_log.commits_from(uri, base), looked_for))
        return cls(delta_log.log_directory(uri), found, {}, True)

    @property
    def names(self) -> list[str]:
        """The names of the commits and of what Delta derives from them."""
        return [*(f"{version:020d}.json" for version in self.commits), *self.others]

    @property
    def last_commit(self) -> int:
        """The newest version; -1 where there is none."""
        return max(self.commits, default=-1)

    @property
    def first_to_read(self) -> int:
        """The version of Delta's newest checkpoint that can be read, or the log's first."""
        base = self.checkpoint_below(self.last_commit)
        return min(self.commits, default=0) if base is None else base

    def checkpoint_below(self, version: int) -> int | None:
        """Return the version of Delta's newest checkpoint that can be read and is not above ``version``."""
        checkpoints = sorted((v, n) for n, v in self.others.items() if v <= version and is_checkpoint(n))
        return next((v for v, name in reversed(checkpoints) if self._opens(name)), None)

    def torn(self) -> tuple[str, ...]:
        """Delta's checkpoints, sums and pointer that cannot be read."""
        newest = {max((n for n in self.others if is_checkpoint(n)), default=""), f"{self.last_commit:020d}.crc"}
        torn = sorted(name for name in newest & set(self.others) if not self._opens(name))
        return (*torn, *([delta_log.LAST_CHECKPOINT] if self.has_pointer and not self._pointer_holds(torn) else []))

    def text(self, version: int) -> str:
        """Return the text of the commit file of ``version``."""
        return text_of(self.directory / f"{version:020d}.json")

    def names_below(self, version: int) -> Iterator[str]:
        """Yield the files of the versions below ``version``, oldest version first."""
        old = [(v, f"{v:020d}.json") for v in self.commits if v < version]
        old += [(v, name) for name, v in self.others.items() if v < version]
        for _, name in sorted(old):
            yield name

    @staticmethod
    def version_of(name: str) -> int:
        """Return the version that a file of the log belongs to. Raises ValueError where it belongs to none."""
        found = _VERSIONED.match(name)
        if found is None:
            raise ValueError(f"{name} belongs to no version")
        return int(found[1])

    def _opens(self, name: str) -> bool:
        if not is_checkpoint(name):
            return is_json((self.directory / name).read_text(errors="replace"))
        try:
            rows_by_footer(self.directory / name)
        except ContentDamaged:
            return False
        return True

    def _pointer_holds(self, torn: Sequence[str]) -> bool:
        text = (self.directory / delta_log.LAST_CHECKPOINT).read_text(errors="replace")
        try:
            version = int(json.loads(text)["version"])
        except (ValueError, KeyError, TypeError):
            return False
        return any(v == version and is_checkpoint(n) and n not in torn for n, v in self.others.items())


def is_checkpoint(name: str) -> bool:
    """Return whether a file of the log is one of Delta's checkpoints."""
    return name.endswith(".parquet")


def is_checksum(name: str) -> bool:
    """Return whether a file of the log is a checksum, by Delta or by Hadoop, of another one."""
    return name.endswith(".crc")


def is_json(text: str) -> bool:
    """Return whether a text is whole JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _names(directory: UPath) -> Iterator[str]:
    if not directory.exists():
        return
    if directory.protocol in ("", "file"):  # a path object for each of a million names takes ten times as long
        with os.scandir(str(directory)) as entries:
            yield from (entry.name for entry in entries)
    else:
        yield from (path.name for path in directory.iterdir())
