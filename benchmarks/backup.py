"""How long a backup and a restore take, by the size of a home.

    python benchmarks/backup.py [--gib 10] [--directory DIR]

Lays out a home with that much in the archive of a landing zone, as segments of 64 MiB that compress no further, and a
small lake. Measures the first backup, one after a hundredth is new, and the restore into an empty home with its
verification. The peer is `cp -a` of the same home. The restored segments are compared with the first ones by their
SHA-256. What a platform loses with its disk is what landed since the last backup: the time between backups and the time
of one.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.runtime.backup import back_up, restore
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS

_SEGMENT_BYTES = 64 * 2**20


def main() -> None:
    """Lay out, measure, compare; exits with 1 where a restored segment differs."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--gib", type=float, default=10.0, help="size of the home")
    arguments.add_argument("--directory", type=Path, help="where to work; three times the size must be free")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as work:
        sys.exit(0 if measured(Path(work), round(chosen.gib * 2**30 / _SEGMENT_BYTES)) else 1)


def measured(work: Path, segments: int) -> bool:
    """Print the figures of a home with so many segments; whether the restored ones are the same."""
    home, target, again = (work / name for name in ("home", "target", "again"))
    MissionClock(START_NS, 0, 0.0).save(home)
    commit(lake_at(home / "lake"), RAW_RECORDS, [{"segment_sha256": "a"}])
    archive, dice = home / "landing" / "radar" / "archive", Random(1)
    archive.mkdir(parents=True)
    expected = {lay_out(archive, dice) for _ in range(segments)}
    print(f"{len(expected)} segments, {len(expected) * _SEGMENT_BYTES / 2**30:.1f} GiB")
    settings = Settings(home=home)
    copied_s = timed("cp -a", lambda: subprocess.run(["cp", "-a", str(home), str(work / "copy")], check=True))
    shutil.rmtree(work / "copy")
    first_s = timed("first backup", lambda: back_up(settings, target))
    print(f"first backup, times cp -a: {first_s / copied_s:.2f}")
    expected |= {lay_out(archive, dice) for _ in range(max(segments // 100, 1))}
    timed("backup after a hundredth is new", lambda: back_up(settings, target))
    shutil.rmtree(home)
    again.mkdir()
    restored_s = timed("restore with verification", lambda: list(restore(Settings(home=again), target)))
    print(f"restore, times cp -a: {restored_s / copied_s:.2f}")
    found = {each.name for each in (again / "landing" / "radar" / "archive").iterdir() if digest(each) == each.name}
    print("restored segments are the same" if found == expected else "RESTORED SEGMENTS DIFFER")
    return found == expected


def lay_out(archive: Path, dice: Random) -> str:
    """Write a segment under its hash, and return that."""
    data = dice.randbytes(_SEGMENT_BYTES)
    name = hashlib.sha256(data).hexdigest()
    (archive / name).write_bytes(data)
    return name


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def timed(what: str, act: Callable[[], object]) -> float:
    """Print and return the seconds of ``act``."""
    began_s = time.perf_counter()
    act()
    seconds = time.perf_counter() - began_s
    print(f"{what}: {seconds:.1f} s", flush=True)
    return seconds


if __name__ == "__main__":
    main()
