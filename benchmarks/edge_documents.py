"""Documents of partners for `edge.py`: large files of element sets and answers of an archive, and a server of them."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from sda_platform.formats.optical import OpticalRecord, encode_optical_record
from sda_platform.simulation.reference import reference_catalogue

MIB = 2**20
_DAYS = (b"2024-10-30T", b"2024-10-31T", b"2024-11-01T")


def element_sets(size: int, revolution: int = 0) -> bytes:
    """A CSV of real element sets, about ``size`` bytes; each copy of the catalogue differs, and each ``revolution``."""
    header, _, body = reference_catalogue().partition(b"\n")
    copies = []
    for number in range(size // len(body) + 1):
        copy = body
        for day in _DAYS:
            copy = copy.replace(day, f"2024-{9 - revolution:02d}-{1 + number:02d}T".encode())
        copies.append(copy)
    content = b"".join(copies)
    return header + b"\n" + content[: content.rfind(b"\n", 0, size) + 1]


def archive_answer(size: int) -> bytes:
    """An answer of an observation archive of at least ``size`` bytes: a JSON array of records, all recorded now."""
    now_ns, lines, length = time.time_ns(), list[bytes](), 0
    while length < size:
        record = OpticalRecord(f"document-{len(lines)}", now_ns - len(lines), 1.0, 0.5, 1.0, "maui", clock_age_s=0.0)
        lines.append(encode_optical_record(record))
        length += len(lines[-1]) + 1
    return b"[" + b",\n".join(lines) + b"]"


@contextmanager
def serving_files(directory: Path, port: int) -> Iterator[None]:
    """A web server of ``directory`` on loopback, in a process of its own."""
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with suppress(httpx.TransportError):
                httpx.head(f"http://127.0.0.1:{port}/", timeout=5)
                break
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(30)
