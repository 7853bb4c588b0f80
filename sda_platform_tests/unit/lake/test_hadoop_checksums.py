"""Checksums beside a file: of every stretch, read in large blocks."""

import io
import zlib
from pathlib import Path

import pytest

from sda_platform.lake import hadoop_checksums


class Counting(io.BytesIO):
    """Counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


def kept(data: bytes, stretch: int) -> bytes:
    parts = [data[start : start + stretch] for start in range(0, len(data), stretch)]
    sums = b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)
    return b"crc\0" + stretch.to_bytes(4, "big") + sums


@pytest.mark.parametrize("size", [0, 1, 4_095, 4_096, 4_097, 10_000])
def test_what_is_kept_of_a_file_is_what_hadoop_keeps(tmp_path: Path, size: int) -> None:
    file = tmp_path / "part.parquet"
    file.write_bytes(bytes(n % 251 for n in range(size)))
    hadoop_checksums.keep(file)
    assert (tmp_path / ".part.parquet.crc").read_bytes() == kept(file.read_bytes(), 4_096)
    (tmp_path / ".part.parquet.crc").write_bytes(b"as Spark kept it")
    hadoop_checksums.keep(file)
    assert (tmp_path / ".part.parquet.crc").read_bytes() == b"as Spark kept it"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".part.parquet.crc", "part.parquet"]


@pytest.mark.parametrize("stretch", [512, 4_096, 5 * 2**20])
def test_a_change_anywhere_shows_and_some_mebibytes_are_read_at_a_time(stretch: int) -> None:
    data = bytes(9 * 2**20 + 7)
    expected = kept(data, stretch)
    sound = Counting(data)
    assert not hadoop_checksums.differ(sound, expected)
    assert sound.reads <= 4
    for place in (0, 4 * 2**20, len(data) - 1):
        changed = data[:place] + b"\1" + data[place + 1 :]
        assert hadoop_checksums.differ(io.BytesIO(changed), expected)
