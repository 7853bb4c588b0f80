"""Resends around the seal, in real processes: a sender repeats what has no acknowledgement, and a fault strikes.

A case is a way in that acknowledges and a moment. The records are sent twice. SIGKILL strikes before, during or after
their seal, and all are sent again to the next process; or the disk is full until it has room again. What was
acknowledged must have landed whatever happened, and in the end everything has.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final, Literal
from unittest.mock import patch

import httpx

from sda_platform.clock import MissionClock
from sda_platform.formats.framing.container import pack_records
from sda_platform.published import COLLECTOR, published
from sda_platform.runtime.processes import free_port
from sda_platform_tests.campaign import small_disk
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.support.collectors import beacons, framed, payloads, telemetry
from sda_platform_tests.support.ephemerides_of_operators import oem_of
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.small_catalogue import small_catalogue

COLLECTED: tuple[str, ...] = ("telemetry", "isl", "upload")
SERVED: tuple[str, ...] = ("elements", "ephemerides")
FULL: Final = "on a full disk"
MOMENTS: tuple[str, ...] = ("before", "during", "after", FULL)
_CONFIG = """
[collector]
control = "127.0.0.1:0"
seal_after_s = {seal_after_s}
least_free_bytes = 0

[sources.partner]
kind = "{kind}"
bind = "127.0.0.1:0"
{options}
"""
_FRAMES, _REQUESTS = 300, 12
_WITHIN_S = 90.0
_DISK_KIB = 64 * 1024
_NORAD_ID = 70_000


@dataclass(frozen=True)
class Resend:
    """A way in and the moment of the fault, by the seal of the first copy."""

    kind: str
    moment: str

    @property
    def name(self) -> str:
        """As reports have it."""
        return f"resend to {self.kind}, " + (FULL if self.moment == FULL else f"killed {self.moment} the seal")

    @property
    def zone(self) -> str:
        """Where it lands."""
        return "isl" if self.kind == "upload" else self.kind

    def records(self) -> list[bytes]:
        """What is sent."""
        match self.kind:
            case "telemetry":
                return telemetry(_FRAMES)
            case "elements":
                return [_element_set(_NORAD_ID + number) for number in range(_REQUESTS)]
            case "ephemerides":
                return [oem_of(5, start_ns=after(60 * number)) for number in range(_REQUESTS)]
            case _:
                return beacons(_FRAMES)

    def held(self, home: Path) -> set[bytes]:
        """Those of `records` that have landed."""
        found = payloads(home, self.zone)
        if self.kind == "elements":
            names = {row.split(b",")[0] for row in found}
            return {each for each in self.records() if json.loads(each)["OBJECT_NAME"].encode() in names}
        kept = {each.strip() for each in found}  # a line's end belongs to no record
        return {each for each in self.records() if each.strip() in kept}


def _element_set(norad_id: int) -> bytes:
    omm = {
        "NORAD_CAT_ID": norad_id, "EPOCH": "2024-10-31T12:00:00", "MEAN_MOTION": 15.5, "ECCENTRICITY": 0.001,
        "INCLINATION": 51.6, "RA_OF_ASC_NODE": 1.0, "ARG_OF_PERICENTER": 2.0, "MEAN_ANOMALY": 3.0,
        "BSTAR": 0.0001, "OBJECT_NAME": f"SENT {norad_id}",
    }  # fmt: skip
    return json.dumps(omm).encode()


class _Process:
    """A process that takes records: a collector of one source, or the catalogue's endpoint."""

    def __init__(self, home: Path, case: Resend, seal_after_s: float) -> None:
        self.case, self.home = case, home
        self.log = home.parent / f"{home.name}.log"
        arguments = self._serving() if case.kind in SERVED else self._collecting(seal_after_s)
        with self.log.open("ab") as log:
            environment = {**os.environ, "SDA_HOME": str(home)}
            self.process = subprocess.Popen([sys.executable, "-m", *arguments], env=environment, stdout=log, stderr=log)
        self.address = self._listening()

    def _collecting(self, seal_after_s: float) -> list[str]:
        options = "" if self.case.kind == "upload" else "acknowledge = true"
        config = self.home / "collect.toml"
        config.write_text(_CONFIG.format(kind=self.case.kind, options=options, seal_after_s=seal_after_s))
        return ["sda_platform.edge", str(config)]

    def _serving(self) -> list[str]:
        self._port = free_port(0)
        return ["sda_platform.cli.main", "--home", str(self.home), "catalog", "serve", "--port", str(self._port)]

    def _listening(self) -> str:
        deadline = time.monotonic() + _WITHIN_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(httpx.HTTPError, KeyError, IndexError):
                if self.case.kind in SERVED:
                    httpx.get(f"http://127.0.0.1:{self._port}/health", timeout=10).raise_for_status()
                    return f"127.0.0.1:{self._port}"
                report = httpx.get(f"http://{published(self.home, COLLECTOR)}/sources", timeout=10).json()
                if address := report["sources"][0]["address"]:
                    return str(address)
            time.sleep(0.05)
        raise AssertionError(f"nothing listens: {self.log.read_text()[-2000:]}")

    def send(self, records: list[bytes], *, within_s: float) -> set[bytes]:
        """Send all, and return those that are acknowledged within this time."""
        if self.case.kind in SERVED:
            return self._posts(records, time.monotonic() + within_s)
        with suppress(OSError, httpx.HTTPError):
            return self._upload(records, within_s) if self.case.kind == "upload" else self._frames(records, within_s)
        return set()

    def _posts(self, records: list[bytes], deadline: float) -> set[bytes]:
        kind = "application/json" if self.case.kind == "elements" else "application/x-ccsds-kvn"

        def is_taken(record: bytes) -> bool:
            with suppress(httpx.HTTPError):
                url, left_s = f"http://{self.address}/{self.case.kind}", max(0.01, deadline - time.monotonic())
                answer = httpx.post(url, content=record, headers={"content-type": kind}, timeout=left_s)
                return answer.is_success
            return False

        with ThreadPoolExecutor(len(records)) as senders:  # at once, so that they are committed in groups
            taken = list(senders.map(is_taken, records))
        return {record for record, is_one in zip(records, taken, strict=True) if is_one}

    def _upload(self, records: list[bytes], within_s: float) -> set[bytes]:
        url = f"http://{self.address}/land/isl?name=night.bin&format=isl-frames"
        content = pack_records(records, list(range(len(records))))
        return set(records) if httpx.post(url, content=content, timeout=within_s).is_success else set()

    def _frames(self, records: list[bytes], within_s: float) -> set[bytes]:
        order: Literal["big", "little"] = "big" if self.case.kind == "telemetry" else "little"
        count, data = 0, b""
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=within_s) as link:
            link.sendall(framed(records, order))
            with suppress(OSError):
                while count < len(records) and (received := link.recv(4096)):
                    data += received
                    whole = len(data) // 8 * 8
                    count = int.from_bytes(data[whole - 8 : whole], order) if whole else count
        return set(records[:count])

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


def cases() -> Iterator[Resend]:
    """Every case; those with a full disk where a disk can be mounted."""
    for kind in (*COLLECTED, *SERVED):
        yield from (Resend(kind, moment) for moment in MOMENTS if moment != FULL or small_disk.is_allowed())


def strike(case: Resend, home: Path, seed: int) -> str | None:
    """Play a case below ``home``; what went wrong, None: nothing."""
    if case.kind in SERVED:
        MissionClock(START_NS, 0, 0.0).save(home)
        small_catalogue(home, [5, 11])
    return _on_full_disk(case, home) if case.moment == FULL else _killed(case, home, seed)


def _killed(case: Resend, home: Path, seed: int) -> str | None:
    records, chance = case.records(), Random(f"{seed} {case.name}")
    process = _Process(home, case, 60.0 if case.moment == "before" else 0.05)
    try:
        # What the endpoint takes it seals at once: there, "before" is the moment at which nothing is sealed yet.
        early_s = 0.01 if case.kind in SERVED else 0.2
        within_s = {"before": early_s, "during": chance.uniform(0.01, 0.3), "after": 30.0}[case.moment]
        durable = process.send(records, within_s=within_s) | process.send(records, within_s=within_s)
        process.kill()
        if lost := durable - case.held(home):
            return f"{case.name}: {len(lost)} records were acknowledged, and are lost"
        if case.moment == "after" and len(durable) < len(records):
            return f"{case.name}: only {len(durable)} records were acknowledged"
        process = _Process(home, case, 0.05)
        return _in_the_end(process, records)
    finally:
        process.kill()


def _on_full_disk(case: Resend, home: Path) -> str | None:
    records = case.records()
    process = _Process(home, case, 0.05)
    try:
        ballast = home / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        durable = process.send(records, within_s=1.0) | process.send(records, within_s=1.0)
        if durable:
            return f"{case.name}: {len(durable)} records were acknowledged, and the disk was full"
        if process.process.poll() is not None:
            return f"{case.name}: the process ended: {process.log.read_text()[-500:]}"
        ballast.unlink()
        return _in_the_end(process, records)
    finally:
        process.kill()


def _in_the_end(process: _Process, records: list[bytes]) -> str | None:
    """Send all again, as long as something is refused, end the process, and look for every record."""
    name, deadline = process.case.name, time.monotonic() + _WITHIN_S
    durable: set[bytes] = set()
    while len(durable) < len(records) and time.monotonic() < deadline:
        durable |= process.send(records, within_s=deadline - time.monotonic())
    if len(durable) < len(records):
        return f"{name}: {len(durable)} of {len(records)} records were acknowledged in the end"
    process.process.send_signal(signal.SIGTERM)
    process.process.wait(_WITHIN_S)
    lost = set(records) - process.case.held(process.home)
    return f"{name}: {len(lost)} records have not landed" if lost else None


def control(seed: int) -> str | None:
    """What is wrong if a collector that acknowledges before the seal is not found out; None: it is."""
    send = _Process.send

    def early(process: _Process, records: list[bytes], *, within_s: float) -> set[bytes]:
        return send(process, records, within_s=within_s) | set(records)

    with TemporaryDirectory(prefix="sda-resend-") as place, patch.object(_Process, "send", early):
        (home := Path(place) / "home").mkdir()
        found = strike(Resend("telemetry", "before"), home, seed)
    return None if found and found.endswith("are lost") else f"an early acknowledgement was not found out: {found}"


def run(repeats: int, seed: int, *, point: str = "", chosen: tuple[Resend, ...] | None = None) -> Report:
    """Play every case ``repeats`` times, or those ``chosen``."""
    selected = [case for case in chosen or tuple(cases()) if point in case.name]
    failures = [] if chosen or point else [failure for failure in [control(seed)] if failure]
    for number in range(repeats):
        for case in selected:
            with TemporaryDirectory(prefix="sda-resend-") as place:
                (home := Path(place) / "home").mkdir()
                disk = small_disk.mounted(home, _DISK_KIB) if case.moment == FULL else nullcontext()
                with disk:
                    failure = strike(case, home, seed + number)
            failures += [f"{failure} (seed {seed + number})"] if failure else []
    return Report("T1 resends", seed, cases=repeats * len(selected), failures=tuple(failures))
