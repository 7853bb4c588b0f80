"""What a power loss, or a hand, leaves on disk: done to a table while no process is there to see it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from sda_platform.lake.log import TableLog
from sda_platform.lake.table import Table
from sda_platform_tests.campaign.platform import Victim

Damage = Callable[[Victim], None]
_ORPHANS = 300


def last_commit_emptied(table: Table, *, with_crc: bool = True) -> Damage:
    """The newest commit came back with no bytes: renamed, and never synced."""
    return _on_last_commit(table, lambda path: path.write_bytes(b""), with_crc)


def last_commit_halved(table: Table, *, with_crc: bool = True) -> Damage:
    """The newest commit came back with its first half."""
    return _on_last_commit(
        table, lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), with_crc
    )


def last_commit_missing(table: Table, *, with_crc: bool = True) -> Damage:
    """The newest commit's directory entry never reached the disk."""
    return _on_last_commit(table, Path.unlink, with_crc)


def commit_left_unfinished(table: Table) -> Damage:
    """CP-11: a commit's temporary file, complete or not, that was never renamed."""

    def damage(victim: Victim) -> None:
        last = _last_commit(victim, table)
        following = f"{int(last.stem) + 1:020d}.json"
        last.with_name(f".{following}.4e8a1c52.tmp").write_bytes(last.read_bytes()[:-20])

    return damage


def delta_checkpoint_torn(table: Table) -> Damage:
    """CP-14: Delta's own checkpoint of the newest version, half written, and `_last_checkpoint` pointing at it."""

    def damage(victim: Victim) -> None:
        last = _last_commit(victim, table)
        torn = last.with_name(f"{last.stem}.checkpoint.parquet")
        torn.write_bytes(b"PAR1" + bytes(4000))
        last.with_name("_last_checkpoint").write_text(json.dumps({"version": int(last.stem), "size": 12}))

    return damage


def delta_checkpoint_pointer_stale(table: Table) -> Damage:
    """CP-15: `_last_checkpoint` is gone, as it is between a checkpoint and the pointer to it."""
    return lambda victim: _last_commit(victim, table).with_name("_last_checkpoint").unlink(missing_ok=True)


def delta_checksum_missing(table: Table) -> Damage:
    """CP-13: the commit is there, the checksum file that Delta writes after it is not."""
    return lambda victim: _last_commit(victim, table).with_suffix(".crc").unlink(missing_ok=True)


def with_old_orphans(table: Table) -> Damage:
    """Data files that no commit names, old enough for VACUUM to delete."""

    def damage(victim: Victim) -> None:
        data = next((victim.home / "lake" / table.name).glob("*.parquet"))
        for number in range(_ORPHANS):
            orphan = data.with_name(f"part-99999-{number:03d}.parquet")
            shutil.copyfile(data, orphan)
            os.utime(orphan, (0, 0))

    return damage


def newest_page_zeroed(table: Table) -> Damage:
    """4 KiB of the newest commit's largest data file never reached the disk."""
    return lambda victim: _spoil(_newest_data_file(victim, table), zeroed)


def newest_bit_flipped(table: Table) -> Damage:
    """One bit of the newest commit's largest data file came back as another."""
    return lambda victim: _spoil(_newest_data_file(victim, table), flipped)


def zeroed(data: bytes) -> bytes:
    """``data`` with 4 KiB of zeros in its middle; where it is smaller, in the middle half."""
    length = min(4096, len(data) // 2)
    start = (len(data) - length) // 2
    return data[:start] + bytes(length) + data[start + length :]


def flipped(data: bytes) -> bytes:
    """``data`` with another bit in its first page of values."""
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


def _spoil(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # page checksums alone must find it


def _newest_data_file(victim: Victim, table: Table) -> Path:
    lines = _last_commit(victim, table).read_text().splitlines()
    added = [action["add"] for line in lines if "add" in (action := json.loads(line))]
    largest: str = max(added, key=lambda add: int(add["size"]))["path"]
    return victim.home / "lake" / table.name / largest


def live_file_deleted(log: TableLog) -> None:
    """The largest data file of a table is gone, by hand."""
    actions = pa.table(DeltaTable(log.uri).get_add_actions(flatten=True)).to_pylist()
    (Path(log.uri) / max(actions, key=lambda action: int(action["num_records"]))["path"]).unlink()


def _on_last_commit(table: Table, change: Callable[[Path], object], with_crc: bool) -> Damage:
    def damage(victim: Victim) -> None:
        last = _last_commit(victim, table)
        change(last)
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
        if not with_crc:
            last.with_suffix(".crc").unlink(missing_ok=True)

    return damage


def _last_commit(victim: Victim, table: Table) -> Path:
    return max((victim.home / "lake" / table.name / "_delta_log").glob("[0-9]*.json"))
