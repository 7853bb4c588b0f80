"""Copies on this machine of small data files in an object store: they never change, so one request each is enough.

Arrow takes at least three requests for each read of a Parquet file. A run and its checks read a new file several times.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.dataset as ds
from pyarrow import fs

from sda_platform.lake.object_store import is_object_store
from sda_platform.lake.storage import location

_MOST_BYTES_OF_A_FILE = 8 * 2**20
"""Of a larger file, some columns cost less than the whole."""
_MOST_BYTES = 2**30
_PREFIX, _STALE_S = "sda-copies-", 86_400.0


@dataclass(frozen=True)
class ReadableFiles:
    """Data files of a table; ``sizes`` gives their sizes in bytes, by name."""

    dataset: ds.Dataset
    sizes: Callable[[], Mapping[str, int]]


class LocalCopies:
    """The copies of one run, in a directory of its own."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[str, str], Path | None] = {}
        self._bytes_left = _MOST_BYTES
        self._directory: TemporaryDirectory[str] | None = None

    def near(self, uri: str, files: ReadableFiles, where: ds.Expression | None) -> ds.Dataset:
        """Return the part of ``files``, of the table at ``uri``, that may have rows for which ``where`` is true.

        Small files are read from their copies, which are made here. Raises FileNotFoundError.
        """
        dataset = files.dataset
        if not is_object_store(uri):
            return dataset
        fragments = list(dataset.get_fragments(where))
        self._copy(uri, files, [each.path for each in fragments if (uri, each.path) not in self._chosen])
        here = fs.LocalFileSystem()
        found = [
            each if copy is None else each.format.make_fragment(str(copy), here, each.partition_expression)
            for each in fragments
            for copy in [self._chosen[uri, each.path]]
        ]
        return ds.FileSystemDataset(found, dataset.schema, dataset.format, here)

    def remove(self) -> None:
        """Remove the copies; what reads them has ended."""
        if self._directory is not None:
            self._directory.cleanup()

    def _copy(self, uri: str, files: ReadableFiles, names: Sequence[str]) -> None:
        if not names:
            return
        sizes = files.sizes()
        wanted: dict[str, str] = {}
        for name in names:
            size = sizes.get(name, _MOST_BYTES)
            if size <= min(_MOST_BYTES_OF_A_FILE, self._bytes_left):
                self._bytes_left -= size
                wanted[name] = (location(uri) / name).path
        contents = location(uri).fs.cat(list(wanted.values())) if wanted else {}
        for name in names:
            self._chosen[uri, name] = self._stored(contents[wanted[name]]) if name in wanted else None

    def _stored(self, content: bytes) -> Path | None:
        try:
            if self._directory is None:
                _sweep()
                self._directory = TemporaryDirectory(prefix=_PREFIX)
            path = Path(self._directory.name) / f"{len(self._chosen)}.parquet"
            path.write_bytes(content)
        except OSError:  # no room here: the file is read in the store
            return None
        return path


def _sweep() -> None:
    """Remove what runs that were killed left a day ago or earlier."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if time.time() - directory.stat().st_mtime > _STALE_S:
                shutil.rmtree(directory, ignore_errors=True)
