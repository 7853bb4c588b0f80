"""Resends around the seal, in real processes: a sender repeats what has no acknowledgement, and SIGKILL strikes.

A case is a source that acknowledges and a moment. The records are sent twice, the collector is killed before, during or
after their seal, and all are sent again to the next process. What was acknowledged must have landed when the process is
dead, and in the end everything has landed.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal

import httpx

from sda_platform.formats.framing.container import pack_records
from sda_platform.published import COLLECTOR, published
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.support.collectors import beacons, framed, payloads, telemetry

KINDS: tuple[str, ...] = ("telemetry", "isl", "upload")
MOMENTS: tuple[str, ...] = ("before", "during", "after")
_CONFIG = """
[collector]
control = "127.0.0.1:0"
seal_after_s = {seal_after_s}

[sources.partner]
kind = "{kind}"
bind = "127.0.0.1:0"
{options}
"""
_FRAMES = 300
_WITHIN_S = 90.0


@dataclass(frozen=True)
class Resend:
    """A source and the moment of the kill, by the seal of the first copy."""

    kind: str
    moment: str

    @property
    def name(self) -> str:
        """As reports have it."""
        return f"resend to {self.kind}, killed {self.moment} the seal"

    @property
    def zone(self) -> str:
        """Where it lands."""
        return "isl" if self.kind == "upload" else self.kind

    def records(self) -> list[bytes]:
        """What is sent."""
        return telemetry(_FRAMES) if self.kind == "telemetry" else beacons(_FRAMES)


class _Process:
    """A collector of one source."""

    def __init__(self, home: Path, case: Resend, seal_after_s: float) -> None:
        options = "" if case.kind == "upload" else "acknowledge = true"
        config = home / "collect.toml"
        config.write_text(_CONFIG.format(kind=case.kind, options=options, seal_after_s=seal_after_s))
        self.case, self.home = case, home
        with (home / "log").open("ab") as log:
            command = [sys.executable, "-m", "sda_platform.edge", str(config)]
            environment = {**os.environ, "SDA_HOME": str(home)}
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.address = self._listening()

    def _listening(self) -> tuple[str, int]:
        deadline = time.monotonic() + _WITHIN_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(httpx.HTTPError, KeyError, IndexError):
                report = httpx.get(f"http://{published(self.home, COLLECTOR)}/sources", timeout=10).json()
                host, _, port = report["sources"][0]["address"].rpartition(":")
                if port:
                    return host, int(port)
            time.sleep(0.05)
        raise AssertionError(f"the collector does not listen: {(self.home / 'log').read_text()[-2000:]}")

    def send(self, records: list[bytes], *, within_s: float) -> int:
        """Send all, and return how many are acknowledged within this time."""
        with suppress(OSError, httpx.HTTPError):
            return self._upload(records, within_s) if self.case.kind == "upload" else self._frames(records, within_s)
        return 0

    def _upload(self, records: list[bytes], within_s: float) -> int:
        url = f"http://{self.address[0]}:{self.address[1]}/land/isl?name=night.bin&format=isl-frames"
        content = pack_records(records, list(range(len(records))))
        return len(records) * httpx.post(url, content=content, timeout=within_s).is_success

    def _frames(self, records: list[bytes], within_s: float) -> int:
        order: Literal["big", "little"] = "big" if self.case.kind == "telemetry" else "little"
        count, data = 0, b""
        with socket.create_connection(self.address, timeout=within_s) as link:
            link.sendall(framed(records, order))
            with suppress(OSError):
                while count < len(records) and (received := link.recv(4096)):
                    data += received
                    whole = len(data) // 8 * 8
                    count = int.from_bytes(data[whole - 8 : whole], order) if whole else count
        return count

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


def cases() -> Iterator[Resend]:
    """Every case."""
    return (Resend(kind, moment) for kind in KINDS for moment in MOMENTS)


def strike(case: Resend, home: Path, seed: int) -> str | None:
    """Play a case below ``home``; what went wrong, None: nothing."""
    records, chance = case.records(), Random(f"{seed} {case.name}")
    process = _Process(home, case, 60.0 if case.moment == "before" else 0.05)
    try:
        within_s = {"before": 0.2, "during": chance.uniform(0.01, 0.3), "after": 30.0}[case.moment]
        durable = max(process.send(records, within_s=within_s), process.send(records, within_s=within_s))
        process.kill()
        held = set(payloads(home, case.zone))
        if lost := set(records[:durable]) - held:
            return f"{case.name}: {len(lost)} records were acknowledged, and are lost"
        if case.moment == "after" and durable < len(records):
            return f"{case.name}: only {durable} records were acknowledged"
        process = _Process(home, case, 0.05)
        if (durable := process.send(records, within_s=_WITHIN_S)) < len(records):
            return f"{case.name}: {durable} of {len(records)} records were acknowledged in the end"
        process.process.send_signal(signal.SIGTERM)
        process.process.wait(_WITHIN_S)
        if lost := set(records) - set(payloads(home, case.zone)):
            return f"{case.name}: {len(lost)} records have not landed"
        return None
    finally:
        process.kill()


def run(repeats: int, seed: int, *, point: str = "", chosen: tuple[Resend, ...] | None = None) -> Report:
    """Play every case ``repeats`` times, or those ``chosen``."""
    selected = [case for case in chosen or tuple(cases()) if point in case.name]
    failures = []
    for number in range(repeats):
        for case in selected:
            with TemporaryDirectory(prefix="sda-resend-") as home:
                failure = strike(case, Path(home), seed + number)
            failures += [f"{failure} (seed {seed + number})"] if failure else []
    return Report("T1 resends", seed, cases=repeats * len(selected), failures=tuple(failures))
