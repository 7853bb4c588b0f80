"""The collectors under load: rate, latency from the socket into a synced segment, losses, memory.

    python benchmarks/edge.py [sustained] [documents] [highest] [burst] [stations] [packets] [peer]
        [--seconds 10] [--json FILE]

Load comes from processes of their own over real sockets. `sustained`: 10,000 observations/s mixed. `documents`:
10,000 radar frames/s beside an archive's answer of 64 MiB, a pull of 46 MB, and an upload and a dropped file of 64 MiB,
each of which is read and landed meanwhile. `highest`: the rate
is doubled until something is lost. `burst`: ten times the rate while the lake takes nothing; nothing of high priority
may be lost. `stations`: 48 stations, one of which stalls in the middle of a frame. `packets`: 10 million telemetry
frames of which a third are duplicates, one core. `peer`: the same frames over TCP into NATS JetStream, both
sides sync before they acknowledge; JetStream gets 200 frames a message, since it syncs each message.
"""

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
from contest import Gate, Result, ratio, report
from edge_documents import MIB, archive_answer, element_sets, serving_files
from edge_peer import flood_collector, flood_jetstream
from edge_process import collector, cpu_s, memory_mib, sender, sent
from rich.console import Console

from sda_platform.edge.collector import LOOP_LAG_BOUND_S
from sda_platform.edge.frames import Frames, frames_of
from sda_platform.edge.packets import PacketProcessor
from sda_platform.formats.telemetry import TELEMETRY_HEADER, encode_telemetry_frames
from sda_platform.runtime.processes import free_port

RADAR = '[sources.radar]\nkind = "radar"\nbind = "127.0.0.1:0"\n'
LINKS = '[sources.links]\nkind = "isl"\nbind = "127.0.0.1:0"\nacknowledge = true\n'
STATIONS = '[sources.stations]\nkind = "telemetry"\nbind = "127.0.0.1:0"\n'
ARCHIVE = '[sources.archive]\nkind = "optical"\nurl = "http://{}/records"\npoll_interval_s = 0.5\noverlap_s = 5\n'
_SHARES = {"radar": 0.845, "links": 0.1, "stations": 0.05}
_KINDS = {"radar": "radar", "links": "isl", "stations": "telemetry"}
_ARCHIVED_PER_S = 50.0


def main() -> int:
    every = (sustained, documents, highest, burst, stations, packets, peer)
    parts = {part.__name__: part for part in every}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edge-", dir=Path.cwd()) as directory:
        results = (parts[name](Path(directory) / name, chosen.seconds) for name in chosen.parts or parts)
        return report(Console(), results, chosen.json)


def _at_rate(home: Path, rate: float, seconds: float) -> dict[str, float]:
    """What became of a mixed load: sent, sealed and lost records, latencies, CPU seconds and memory."""
    archive = ("127.0.0.1", str(free_port(0)))
    archiving = sender("optical", archive, _ARCHIVED_PER_S, seconds + 5)
    with collector(home, RADAR + LINKS + STATIONS + ARCHIVE.format(":".join(archive))) as running:
        before_s = cpu_s(running.pid)
        senders = [
            sender(_KINDS[name], running.address(name), rate * share, seconds, "--tracks", "100000")
            for name, share in _SHARES.items()
        ]
        paced = sum(sent(each)["sent"] for each in senders)
        total = paced + sent(archiving)["sent"]
        running.settle()
        found = {
            "sent": total,
            "rate": paced / seconds,
            "sealed": running.total("sealed"),
            "dropped": running.total("dropped"),
            "kernel_drops": running.kernel_drops(),
            "p50_s": running.latency_s(0.5),
            "p99_s": running.latency_s(0.99),
            "cpu_s": cpu_s(running.pid) - before_s,
            "memory_mib": memory_mib(running.pid),
        }
    found["lost"] = found["sent"] - found["sealed"] - found["kernel_drops"]
    found["per_core"] = found["sealed"] / found["cpu_s"]
    return found


def sustained(home: Path, seconds: float) -> Result:
    """10,000 observations/s."""
    found = _at_rate(home, 10_000, seconds)
    gates = (
        Gate("rate that was sent, 1/s", found["rate"], 9_500, at_least=True),
        Gate("lost in the collector", found["lost"] + found["dropped"], 0, at_least=False),
        Gate("dropped by the kernel", found["kernel_drops"], 0, at_least=False),
        Gate("p99 from the socket into a synced segment, s (interpolated)", found["p99_s"], 0.25, at_least=False),
        Gate("observations per CPU second of the collector", found["per_core"], 10_000, at_least=True),
    )
    return Result(f"sustained, {found['sealed']:,.0f} records", {}, {"p50": [found["p50_s"]]}, gates)


def documents(home: Path, seconds: float) -> Result:
    """10,000 radar frames/s beside documents of partners; gates of the records of high priority."""
    served, dropped = home / "served", home / "dropped"
    served.mkdir(parents=True)
    dropped.mkdir()
    (served / "records").write_bytes(archive_answer(64 * MIB))
    (served / "catalogue.csv").write_bytes(element_sets(46_000_000))
    upload, port = element_sets(64 * MIB, revolution=1), free_port(0)
    address = f"127.0.0.1:{port}"
    described = RADAR + ARCHIVE.format(address).replace("poll_interval_s = 0.5", "poll_interval_s = 600") + (
        f'[sources.pull]\nkind = "pull"\nurl = "http://{address}/catalogue.csv"\nformat = "omm-csv"\n'
        f'[sources.folder]\nkind = "folder"\npath = "{dropped}"\n'
        '[sources.upload]\nkind = "upload"\nbind = "127.0.0.1:0"\n'
    )  # fmt: skip
    with serving_files(served, port), collector(home / "collector", described) as running:
        sending = sender("radar", running.address("radar"), 10_000, seconds, "--tracks", "100000")
        (dropped / "elements").mkdir(exist_ok=True)
        (dropped / "elements" / "night.csv").write_bytes(element_sets(64 * MIB, revolution=2))
        url = "http://{}:{}/land/elements?name=day.csv&format=omm-csv".format(*running.address("upload"))
        answer = httpx.post(url, content=upload, timeout=seconds + 60)
        paced = sent(sending)["sent"]
        running.settle()
        sealed = {name: running.sealed_of(name) for name in ("radar", "archive", "pull", "folder", "upload")}
        kernel, p99_s = running.kernel_drops(), running.latency_s(0.99, "radar")
        p50_s, lag_s = running.latency_s(0.5, "radar"), running.report()["loop_lag_s"]
    landed = sum(sealed[name] > 0 for name in ("archive", "pull", "folder", "upload"))
    gates = (
        Gate("rate that was sent, 1/s", paced / seconds, 9_500, at_least=True),
        Gate("radar frames lost in the collector", paced - kernel - sealed["radar"], 0, at_least=False),
        Gate("dropped by the kernel", kernel, 0, at_least=False),
        Gate("p99 from the socket into a synced segment, s (interpolated)", p99_s, 0.25, at_least=False),
        Gate("documents that landed", landed * answer.is_success, 4, at_least=True),
        Gate("longest lag of the event loop, s", lag_s, LOOP_LAG_BOUND_S, at_least=False),
    )
    return Result(f"documents, {sealed}", {}, {"p50": [p50_s]}, gates)


def highest(home: Path, seconds: float) -> Result:
    """The highest rate of 20,000, 40,000 … at which nothing is lost and p99 stays below 0.25 s."""
    rungs, rate, held = [], 20_000.0, 0.0
    while rate <= 320_000:
        found = _at_rate(home / f"{rate:.0f}", rate, min(seconds, 10.0))
        is_lost = found["lost"] + found["dropped"] + found["kernel_drops"]
        rungs.append(
            f"{found['rate']:,.0f}/s: lost {is_lost:,.0f}, p99 {found['p99_s']:.3f} s, "
            f"{found['per_core']:,.0f} per CPU second"
        )
        if is_lost or found["p99_s"] > 0.25 or found["rate"] < 0.9 * rate:
            break
        held, rate = found["rate"], rate * 2
    gate = Gate("highest rate that held, 1/s", held, 20_000, at_least=True)
    return Result("\n".join(["highest", *rungs]), {}, {}, [gate])


def burst(home: Path, seconds: float) -> Result:
    """10,000/s, then ten times that on few tracks for ``seconds``, then 10,000/s; few MiB of backlog are allowed."""
    service = f"backlog_max_bytes = {20 * 2**20}"
    with collector(home, RADAR, service) as running:
        address, memory = running.address("radar"), list[tuple[float, float]]()
        named_s, burst_s, sent_in_all, before_s = float("inf"), float("inf"), 0.0, min(seconds, 10.0)
        for rate, tracks, for_s in ((10_000, 20_000, before_s), (100_000, 4_000, seconds), (10_000, 20_000, before_s)):
            sending = sender("radar", address, rate, for_s, "--tracks", str(tracks))
            burst_s = time.monotonic() if rate == 100_000 else burst_s
            while sending.poll() is None:
                memory.append((time.monotonic() - burst_s, memory_mib(running.pid)))
                if burst_s <= time.monotonic() and running.report()["bottleneck"]:
                    named_s = min(named_s, time.monotonic() - burst_s)
                time.sleep(0.25)
            sent_in_all += sent(sending)["sent"]
        running.settle()
        high = {fact: running.total(fact, "high") for fact in ("received", "sealed", "dropped")}
        low = {fact: running.total(fact, "low") for fact in ("received", "sealed", "dropped", "deferred")}
        kernel, p99_s = running.kernel_drops(), running.latency_s(0.99)
    early = max(mib for at_s, mib in memory if at_s <= min(30.0, seconds / 2))
    growth = max(mib for _, mib in memory) - early
    unaccounted = sent_in_all - kernel - high["received"] - low["received"]
    in_ledger = sum(each["received"] - each["sealed"] - each["dropped"] for each in (high, low))
    gates = (
        Gate("high priority dropped", high["dropped"], 0, at_least=False),
        Gate("high priority p99, s (interpolated)", p99_s, 5.0, at_least=False),
        Gate("low priority deferred", low["deferred"], 1, at_least=True),
        Gate("deferred records not in segments", low["received"] - low["sealed"] - low["dropped"], 0, at_least=False),
        Gate("records that no account has", abs(unaccounted) + abs(in_ledger), 0, at_least=False),
        Gate("dropped by the kernel, share", kernel / sent_in_all, 0.001, at_least=False),
        Gate("memory, MiB", early + growth, 600, at_least=False),
        Gate("memory above that of the burst's first 30 s, MiB", growth, 20, at_least=False),
        Gate("bottleneck named after, s", named_s, 30, at_least=False),
    )
    return Result(f"burst, {sent_in_all:,.0f} sent, {low['deferred']:,} deferred", {}, {}, gates)


def stations(home: Path, seconds: float) -> Result:
    """48 connections of 100 frames/s each; in every second round one more stops in the middle of a frame."""
    p99_s: dict[str, list[float]] = {"all alive": [], "one stalled": []}
    for number in range(8):
        name = list(p99_s)[number % 2]
        with collector(home / str(number), STATIONS) as running:
            address = running.address("stations")
            with socket.create_connection((address[0], int(address[1]))) as stalled:
                if name == "one stalled":
                    stalled.sendall(b"\x00\x00\x01\x00half")
                # Four processes of twelve connections: 48 processes would measure the scheduler.
                options = ("--connections", "12", "--tracks", "10000", "--identity")
                senders = [
                    sender("telemetry", address, 1_200, min(seconds, 8.0), *options, str(100 * n)) for n in range(4)
                ]
                total = sum(sent(each)["sent"] for each in senders)
                running.settle()
                report = running.report()["sources"][0]
                half = report["errors"].get("invalid", 0)
                assert report["sealed"] == total + half, report
                p99_s[name].append(running.latency_s(0.99, "telemetry"))
    slower = ratio(p99_s, "all alive", "one stalled")
    return Result("stations", {}, p99_s, [Gate("p99 with one stalled, times without", slower, 1.1, at_least=False)])


def packets(home: Path, seconds: float) -> Result:
    """10 million frames with 33 % duplicates through the packet processor."""
    del home, seconds
    batches = list(_batches(20, 10_000))
    times, survivors = [], 0
    for _ in range(4):
        processor, survivors, taken = PacketProcessor(), 0, 0.0
        for turn in range(50):
            for frames in batches:
                _renumber(frames, turn)
                began = time.perf_counter()
                found = processor.process(frames)
                taken += time.perf_counter() - began
                survivors += len(found.routine)
        times.append(taken)
    frames_in_all = 50 * 20 * 10_000
    gates = (
        Gate("frames per second, one core", frames_in_all / float(np.median(times[1:])), 2_000_000, at_least=True),
        Gate("survivors, share", survivors / frames_in_all, 2 / 3 + 0.001, at_least=False),
        Gate("survivors, share", survivors / frames_in_all, 2 / 3 - 0.001, at_least=True),
    )
    return Result("packets", {"frames": frames_in_all}, {"process": times[1:]}, gates)


def _batches(count: int, size: int) -> Iterator[Frames]:
    """Batches in which every third frame repeats the one before."""
    for number in range(count):
        sequence = np.arange(size) * 2 // 3 + number * size
        received = frames_of(
            encode_telemetry_frames(
                timestamp_ms=sequence, sequence=sequence, satellite_id=sequence % 48, station_id=sequence % 12,
                flags=np.zeros(size, int), payloads=[b"x" * 256] * size,
            )
        )  # fmt: skip
        yield Frames(received.buffer.copy(), received.starts, received.lengths)


def _renumber(frames: Frames, turn: int) -> None:
    """Give the frames of a batch sequences that no earlier turn had, in place."""
    rows = frames.buffer.reshape(len(frames), -1)
    headers = rows[:, : TELEMETRY_HEADER.itemsize].copy().view(TELEMETRY_HEADER)[:, 0]
    headers["sequence"] = headers["sequence"] % 1_000_000 + turn * 1_000_000
    rows[:, : TELEMETRY_HEADER.itemsize] = headers.view(np.uint8).reshape(len(frames), -1)


def peer(home: Path, seconds: float) -> Result:
    """The same frames into the collector and into JetStream, in turns."""
    frames = int(50_000 * seconds)
    cpu: dict[str, list[float]] = {"collector": [], "JetStream": []}
    wall: dict[str, list[float]] = {"collector": [], "JetStream": []}
    for number in range(4):
        for name, flood in (("collector", flood_collector), ("JetStream", flood_jetstream)):
            found = flood(home / f"{name}-{number}", frames)
            assert found.durable == frames, (name, found)
            if number:
                cpu[name].append(found.cpu_s)
                wall[name].append(found.wall_s)
    gates = (
        Gate("records per core, times JetStream", ratio(cpu, "collector", "JetStream"), 1.0, at_least=True),
        Gate("records per second, times JetStream", ratio(wall, "collector", "JetStream"), 1.0, at_least=True),
    )
    told = {f"{name}, {kind}": values for kind, of in (("CPU", cpu), ("wall", wall)) for name, values in of.items()}
    return Result(f"peer, {frames:,} frames of 80 bytes", {"records": frames}, told, gates)


if __name__ == "__main__":
    sys.exit(main())
