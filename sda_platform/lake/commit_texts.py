"""The texts of a table's commits, in its log or kept after that was cut. They do not change: a run reads each once."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from sda_platform.lake import delta_log
from sda_platform.lake.kept_commits import KeptCommits
from sda_platform.lake.storage import text_of

KEPT_TEXTS: Final = 32
"""So many texts that were read last are kept in memory."""


class CommitTexts:
    """Those of the table at ``uri``."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._text = lru_cache(maxsize=KEPT_TEXTS)(self._read)
        self.kept = KeptCommits(uri)
        self.newest_seen = -1
        """The newest version when it was last looked for."""

    def newest_version(self) -> int:
        """Return the newest version now; -1 where there is no table."""
        self.newest_seen = delta_log.newest_version(self._uri, self.newest_seen)
        return self.newest_seen

    def from_version(self, version: int) -> Iterator[tuple[int, str]]:
        """Versions and texts from ``version`` downwards, as far as there are any: of the log's own files, and where
        it was cut, of the commits that were kept (`kept_commits`): these have no actions on data files.

        delta-rs' ``history`` is not used: it may return commits that came after the loaded version, and label them with
        its numbers.
        """
        below = version
        for number, text in self.in_log(version):
            yield number, text
            below = number - 1
        yield from self.kept.from_version(below)

    def in_log(self, version: int) -> Iterator[tuple[int, str]]:
        """As `from_version`, of the log's own files only."""
        for number in range(version, -1, -1):
            try:
                yield number, self._text(number, delta_log.identity(self._uri, number))
            except FileNotFoundError:
                return

    def _read(self, version: int, _of: object) -> str:
        return text_of(delta_log.commit_file(self._uri, version))
