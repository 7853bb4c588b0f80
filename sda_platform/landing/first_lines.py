"""The line that a file of some formats lands with, before its own: its name, or the mapping of its columns.

Mappings are files in TOML below ``<home>/mappings``, one for each kind of file, read whenever a file may need one: so
an edited mapping concerns the next file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from sda_platform.formats.column_mapping import ColumnMapping
from sda_platform.formats.format import Format
from sda_platform.formats.mapped_csv import mapping_line, misfit
from sda_platform.formats.registry import MAPPED_CSV, known_format
from sda_platform.formats.tabulated_paths import name_line
from sda_platform.toml_file import read_toml

_FOLDER: Final = "mappings"


class MappingError(ValueError):
    """A mapping that cannot be used, or a file that needs one and has none; the text has file and reason."""


@dataclass(frozen=True)
class Mappings:
    """The mappings of a home; ``folder`` None: there are none."""

    folder: Path | None = None

    @classmethod
    def of(cls, home: Path) -> Self:
        """Those of the platform of ``home``."""
        return cls(home / _FOLDER)

    def paths(self) -> list[Path]:
        """Their files, by name."""
        return sorted(self.folder.glob("*.toml")) if self.folder else []

    def load(self) -> list[ColumnMapping]:
        """All of them, by name. Raises MappingError for the first that cannot be used."""
        return [_mapping(path) for path in self.paths()]

    def line(self, name: str, beginning: bytes) -> bytes:
        """Return the first line for a file of this name that begins so.

        A mapping that cannot be used keeps no file from one that fits. Raises MappingError: none fits, or several.
        """
        fitting, misfits = list[ColumnMapping](), list[str]()
        for path in self.paths():
            try:
                mapping = _mapping(path)
            except MappingError as error:
                misfits.insert(0, f"cannot be used: {error}")
                continue
            if reason := misfit(mapping, name, beginning):
                misfits.append(f"{mapping.mapping}: {reason}")
            else:
                fitting.append(mapping)
        if len(fitting) == 1:
            return mapping_line(fitting[0])
        if fitting:
            names = " and ".join(each.mapping for each in fitting)
            raise MappingError(f"the mappings {names} both fit: state in files of each which ones it is for")
        raise MappingError(f"no mapping in {self.folder} fits ({'; '.join(misfits) or 'there is none'})")


def _mapping(path: Path) -> ColumnMapping:
    return read_toml(path, ColumnMapping, MappingError).model_copy(update={"mapping": path.name})


NO_MAPPINGS: Final = Mappings()


def first_line(known: Format, name: str, beginning: bytes, mappings: Mappings) -> bytes:
    """Return the line that a file of this format lands with, empty for most. ``beginning`` is text. Raises
    MappingError.
    """
    if known.is_named:
        return name_line(name)
    if known.name != MAPPED_CSV or (known.begins and known.begins.search(beginning)):
        return b""
    return mappings.line(name, beginning)


def mapped(candidates: Sequence[Format], name: str, beginning: bytes, mappings: Mappings) -> Format | None:
    """Return the format of files with a mapping, where it is a candidate and one fits, for what begins like no other.

    Raises MappingError: no mapping fits, or several.
    """
    if known_format(MAPPED_CSV) not in candidates or not mappings.paths():
        return None
    mappings.line(name, beginning)
    return known_format(MAPPED_CSV)
