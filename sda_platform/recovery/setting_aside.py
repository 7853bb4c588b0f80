"""Setting files of a table's log aside: Delta, Spark and VACUUM pass over the directory that they go to."""

from collections.abc import Callable, Sequence

from sda_platform import failpoints
from sda_platform.lake import delta_log, durable
from sda_platform.lake.log import TableLog

SET_ASIDE = "_lost"
"""In a table's log: what was set aside."""
NO_VERSION = -1
_VERSION_DIGITS = 20


def files_from(log: TableLog, first: int) -> list[str]:
    """Files of the log that belong to version ``first`` or later, in the order in which they may be moved away.

    Newest version first, and of one version the commit last: as long as anything is left, the damage shows.
    """
    names = _names(log, lambda version: version >= first)
    ordered = sorted(names, key=lambda name: (-version_of(name), name.endswith(".json"), name))
    pointer = delta_log.log_directory(log.uri) / delta_log.LAST_CHECKPOINT
    return [*([pointer.name] if pointer.exists() else []), *ordered]


def files_below(log: TableLog, version: int) -> list[str]:
    """Files of the log that belong to versions below ``version``, oldest first."""
    return sorted(_names(log, lambda found: NO_VERSION < found < version), key=lambda name: (version_of(name), name))


def version_of(name: str) -> int:
    """Return the version that a file of the log belongs to, Hadoop's hidden checksums included."""
    digits = name.removeprefix(".")[:_VERSION_DIGITS]
    return int(digits) if len(digits) == _VERSION_DIGITS and digits.isdigit() else NO_VERSION


def set_aside(log: TableLog, names: Sequence[str]) -> list[str]:
    """Move files of the log, with Hadoop's checksum files, aside; what was done, in words."""
    if not names:
        return []
    directory = delta_log.log_directory(log.uri)
    target = directory / SET_ASIDE
    durable.make_directory(target)
    for name in names:
        file = directory / name
        for each in (delta_log.hadoop_checksum(file), file):
            if each.exists():
                taken = sum(1 for path in target.iterdir() if path.name.startswith(each.name))
                each.rename(target / f"{each.name}.{taken}")
                failpoints.hit("recovery.set_aside")
    durable.sync([target, directory])
    return [f"set aside {', '.join(name for name in names if not name.startswith('.'))}"]


def _names(log: TableLog, chosen: Callable[[int], bool]) -> list[str]:
    return [path.name for path in delta_log.log_directory(log.uri).iterdir() if chosen(version_of(path.name))]
