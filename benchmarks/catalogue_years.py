"""The index of years of element sets: its cost to rebuild, start and update, and its answers, after a check of them.

    python benchmarks/catalogue_years.py [--objects 30000] [--years 5] [--directory DIR] [--keep]

The history is synthetic: each object has 2.5 sets a day, each tenth of them up to a random time. A commit of
`element_sets` holds a week, a segment an hour. delta-rs writes the tables with the platform's checkpoints. Rebuild and
start are measured in processes of their own, lookups over HTTP at `sda catalog serve`, the rest in process. Exit code 1
means that a bound is missed; the bounds hold for the default size.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from catalogue_http import PEER, Connection, connected, running

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.table import Table
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.recovery.review import review
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.runtime.processes import free_port
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.rocksdb_engine import RocksDbEngine
from sda_platform.serving.states import states
from sda_platform.serving.store import IndexStore
from sda_platform.units import DAY_NS
from sda_platform_tests.support.delta_tables import commit, lake_at, row

BEGIN_NS = 18_000 * DAY_NS
INTERVAL_NS = DAY_NS * 2 // 5
HOUR_NS = DAY_NS // 24
WEEK_NS = 7 * DAY_NS
BULK_CLIENTS = 4
_BULK = """
import sys, urllib.request
while True:
    request = urllib.request.Request(sys.argv[1], headers={"Accept-Encoding": "gzip"})
    urllib.request.urlopen(request).read()
"""


STALLED = 100
_BODY_BYTES = 31 * 2**20


class Gates:
    """Figures with bounds; a missed one is said at once and in the end."""

    def __init__(self) -> None:
        self._missed: list[str] = []

    def judge(self, name: str, value: float, bound: float, unit: str) -> None:
        """Print a figure, which shall be ``bound`` at most."""
        is_missed = value > bound
        print(f"{name}: {value:,.4g} {unit} (bound {bound:,.4g}{', MISSED' if is_missed else ''})", flush=True)
        if is_missed:
            self._missed.append(name)

    def end(self) -> None:
        """Exit with 1 where a bound was missed."""
        if self._missed:
            raise SystemExit(f"missed: {'; '.join(self._missed)}")


class Years:
    """What is in the synthetic history, by formulas: the oracle of the answers."""

    def __init__(self, objects: int, years: float) -> None:
        self.numbers = np.arange(1, objects + 1)
        self.end_ns = BEGIN_NS + int(years * 365.25) * DAY_NS
        chance = np.random.default_rng(1)
        self.first_ns = BEGIN_NS + chance.integers(0, INTERVAL_NS // 1000, objects) * 1000
        self.last_ns = np.full(objects, self.end_ns)
        self.last_ns[::10] = chance.integers(BEGIN_NS + WEEK_NS, self.end_ns, len(self.last_ns[::10]))
        self.mean_motions = 15.0 + chance.random(objects).round(8)

    def epoch_before(self, number: int, time_ns: int) -> int:
        """Epoch of the set in force of an object at a time."""
        first_ns = int(self.first_ns[number - 1])
        return first_ns + max(min(time_ns, int(self.last_ns[number - 1])) - first_ns, 0) // INTERVAL_NS * INTERVAL_NS

    def between(self, since_ns: int, until_ns: int) -> dict[str, Any]:
        """Columns of the sets with an epoch in [since_ns, until_ns), by epoch."""
        turns = np.arange((since_ns - BEGIN_NS) // INTERVAL_NS - 1, (until_ns - BEGIN_NS) // INTERVAL_NS + 1)
        epochs = (self.first_ns[:, None] + turns * INTERVAL_NS).ravel()
        objects = np.repeat(np.arange(len(self.numbers)), len(turns))
        is_there = (epochs >= np.maximum(since_ns, self.first_ns[objects])) & (epochs < until_ns)
        chosen = np.flatnonzero(is_there & (epochs <= self.last_ns[objects]))
        chosen = chosen[np.argsort(epochs[chosen], kind="stable")]
        return self._columns(objects[chosen], epochs[chosen])

    def newest(self) -> dict[str, Any]:
        """Columns of the last set of each object."""
        epochs = [self.epoch_before(number, self.end_ns - 1) for number in self.numbers.tolist()]
        return self._columns(np.arange(len(self.numbers)), np.array(epochs))

    def _columns(self, objects: npt.NDArray[Any], epochs: npt.NDArray[Any]) -> dict[str, Any]:
        hours, count = (epochs - BEGIN_NS) // HOUR_NS, len(objects)
        chance = np.random.default_rng(int(epochs[0]) % 2**32)
        hashes = pa.array([sha256(str(hour).encode()).hexdigest() for hour in range(hours.min(), hours.max() + 1)])
        return {
            "norad_id": self.numbers[objects],
            "epoch_time_ns": epochs,
            "received_time_ns": BEGIN_NS + (hours + 1) * HOUR_NS,
            "segment_sha256": hashes.take(pa.array(hours - hours.min())),
            "record_number": self.numbers[objects],
            "object_name": self._names.take(pa.array(objects)),
            "international_designator": self._designators.take(pa.array(objects)),
            "mean_motion_rev_per_day": self.mean_motions[objects],
            "eccentricity": (chance.random(count) * 0.01).round(7),
            "inclination_deg": (self.mean_motions[objects] * 5 + chance.random(count) * 0.01).round(4),
            "raan_deg": (chance.random(count) * 360).round(4),
            "arg_of_pericenter_deg": (chance.random(count) * 360).round(4),
            "mean_anomaly_deg": (chance.random(count) * 360).round(4),
            "bstar_per_earth_radius": (chance.random(count) * 1e-4).round(9),
            "mean_motion_dot_rev_per_day2": (chance.random(count) * 1e-4).round(8),
            "mean_motion_ddot_rev_per_day3": np.zeros(count),
            "element_set_number": np.full(count, 999),
            "revolution_at_epoch": (epochs - BEGIN_NS) * 15 // DAY_NS % 100_000,
        }

    @cached_property
    def _names(self) -> pa.Array:
        return pa.array([f"OBJECT {number} DEB" for number in self.numbers.tolist()])

    @cached_property
    def _designators(self) -> pa.Array:
        return pa.array([f"{1960 + number % 60}-{number % 300:03d}AB" for number in self.numbers.tolist()])


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=30_000)
    parser.add_argument("--years", type=float, default=5.0)
    parser.add_argument("--directory", type=Path, help="where some 25 GB fit")
    parser.add_argument("--keep", action="store_true", help="keep the tables, and use those that are there")
    parser.add_argument("--part", choices=["start"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    years = Years(chosen.objects, chosen.years)
    if chosen.part:
        started(chosen.directory, years)
        return
    with ExitStack() as cleaned:
        home = chosen.directory or Path(cleaned.enter_context(tempfile.TemporaryDirectory()))
        if not chosen.keep:
            cleaned.callback(shutil.rmtree, home, ignore_errors=True)
        if not (home / "lake").exists():
            MissionClock(years.end_ns, 0, 0.0).save(home)
            made(home, years)
        shutil.rmtree(home / "serving", ignore_errors=True)
        command = [sys.executable, __file__, "--part=start", f"--directory={home}"]
        command += [f"--objects={chosen.objects}", f"--years={chosen.years}"]
        gates = Gates()
        for what in ("rebuild", "start"):
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            print(f"{what}: {found}", flush=True)
            if what == "rebuild":
                gates.judge("memory of a rebuild", found["peak_mb"], 2_000, "MB")
            else:
                gates.judge("start", found["s"], 30, "s")
        lookups(home, years, gates)
        in_process(home, years, gates)
    gates.end()


def lake_of(home: Path, years: Years) -> Lake:
    """The lake below ``home`` at the end of the years."""
    return lake_at(home / "lake", now_ns=years.end_ns, reads_unverified=False)


def made(home: Path, years: Years) -> None:
    """Write the tables: a commit a week, then the catalogue."""
    lake, began, rows = lake_of(home, years), time.perf_counter(), 0
    for since_ns in range(BEGIN_NS, years.end_ns, WEEK_NS):
        found = whole(ELEMENT_SETS, years.between(since_ns, min(since_ns + WEEK_NS, years.end_ns)))
        rows += found.num_rows
        commit(lake, ELEMENT_SETS, found)
    catalogued(lake, whole(ORBITAL_CATALOG, years.newest()))
    used = sum(file.stat().st_size for file in (home / "lake").rglob("*.parquet"))
    print(f"made {rows:,} sets of {len(years.numbers):,} objects, {used / 1e9:.2f} GB, in {passed(began):.0f} s")


def whole(table: Table, columns: dict[str, Any]) -> pa.Table:
    """Rows with all columns of the table; those that are not given have one plain value."""
    count, plain = (
        len(columns["norad_id"]),
        row(table, source_priority=10, source_name="synthetic", originator="18 SPCS"),
    )
    return pa.table(
        [
            pa.array(columns[field.name], field.type)
            if field.name in columns and not isinstance(columns[field.name], pa.Array)
            else columns.get(field.name, pa.repeat(pa.scalar(plain[field.name], field.type), count))
            for field in table.arrow_schema
        ],
        schema=table.arrow_schema,
    )


def catalogued(lake: Lake, rows: pa.Table) -> None:
    """Commit and verify rows of the catalogue, which consumes all of `element_sets`."""
    before, now = lake.log(ORBITAL_CATALOG).head(), lake.log(ELEMENT_SETS).head()
    seen = before.commit.manifest.window(ELEMENT_SETS.name) if before.commit else None
    after, version = (seen.upto_sequence, seen.upto_version) if seen else (0, -1)
    window = TableWindow(
        ELEMENT_SETS.name, after, now.sequence, version, now.commit_version, now.manifest_sha256
    )  # fmt: skip
    commit(lake, ORBITAL_CATALOG, rows, windows=[window])
    review(lake, ORBITAL_CATALOG)


def opened(home: Path, years: Years) -> LiveCatalogue:
    """The live catalogue of ``home``."""
    source = LakeSource(lake_of(home, years), str(home / "landing"))
    return LiveCatalogue(source, IndexStore(home / "serving"), lambda: years.end_ns)


def started(home: Path, years: Years) -> None:
    """Start, which rebuilds where there is no index, and print the cost of the process as JSON."""
    began, live = time.perf_counter(), opened(home, years)
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    live.start()
    assert live.binding is not None and live.get(2) is not None
    seconds, used = passed(began), sum(file.stat().st_size for file in (home / "serving").rglob("*.sst"))
    live.close()
    processor = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "s": round(seconds, 2),
                "processor_s": round(processor.ru_utime + processor.ru_stime, 1),
                "peak_mb": processor.ru_maxrss // 1024,
                "peak_before_mb": imported // 1024,
                "sets": live.binding.sets,
                "bytes_per_set": round(used / live.binding.sets, 1),
            }
        )
    )


def lookups(home: Path, years: Years, gates: Gates) -> None:
    """Lookups over HTTP by one client that stays, alone and beside bulk clients; the same at a bare server."""
    port, peer = free_port(0), free_port(0)
    serve = ["-m", "sda_platform.cli.main", "--home", str(home), "catalog", "serve", "--port", str(port)]
    with running(serve) as process:
        lengths = [len(Connection(port).get("/objects/2")), bulk_length(port)]
        late_ms = looked_up("lookup over HTTP", port, years)
        gates.judge(f"lookup beside {BULK_CLIENTS} bulk clients, 99 %", late_ms, 1.0, "ms")
        for what, grown_mb in stalled(port, process).items():
            gates.judge(f"memory that {STALLED} stalled {what} take", grown_mb, 300, "MB")
    with running(["-c", PEER, str(peer), *map(str, lengths)]):
        looked_up("peer, a constant", peer, years)


def stalled(port: int, process: int) -> dict[str, float]:
    """By how many MB the server grows while clients stall in their bodies, or do not read; it answers meanwhile."""
    body = (
        f"POST /elements HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: {_BODY_BYTES}\r\n\r\n"
    )
    bulk = b"GET /objects?format=json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    grown = {}
    for what, begin, rest in (("senders", body.encode(), b"a" * (_BODY_BYTES - 1)), ("readers", bulk, b"")):
        before_mb = resident_mb(process)
        clients = [connected(port) for _ in range(STALLED)]
        for client in clients:
            client.sendall(begin)
            client.settimeout(0.2)
            with suppress(TimeoutError, OSError):  # the server does not take more than it may hold
                client.sendall(rest)
        highest_mb = 0.0
        for _ in range(20):
            time.sleep(0.1)
            highest_mb = max(highest_mb, resident_mb(process))
        # Another client, from another address: one peer has a share of what all may hold.
        other = HTTPConnection("127.0.0.1", port, source_address=("127.0.0.2", 0))
        other.request("GET", "/objects/2")
        assert json.loads(other.getresponse().read())[0]["NORAD_CAT_ID"] == 2
        other.close()
        for client in clients:
            client.close()
        grown[what] = highest_mb - before_mb
    return grown


def resident_mb(process: int) -> float:
    """Resident memory of a process, MB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def bulk_length(port: int) -> int:
    """Bytes of a compressed answer to the bulk clients."""
    request = Request(f"http://127.0.0.1:{port}/objects?format=csv", headers={"Accept-Encoding": "gzip"})
    with urlopen(request) as answer:
        return len(answer.read())


def looked_up(name: str, port: int, years: Years) -> float:
    """Print the time of lookups, without bulk clients and with them; that below which 99 % of the last are, ms."""
    connection, chance = Connection(port), np.random.default_rng(3)
    with ExitStack() as bulk:
        for what in ("alone", f"beside {BULK_CLIENTS} bulk clients"):
            times_ms = []
            for number in chance.choice(years.numbers, 4_000).tolist():
                began = time.perf_counter()
                body = connection.get(f"/objects/{number}")
                times_ms.append(1000 * passed(began))
                assert body[:1] == b"x" or json.loads(body)[0]["NORAD_CAT_ID"] == number
            median, late = np.percentile(times_ms[500:], [50, 99])
            print(f"{name} {what}: median {median:.2f} ms, 99 % below {late:.2f} ms", flush=True)
            for _ in range(BULK_CLIENTS if what == "alone" else 0):
                bulk.enter_context(running(["-c", _BULK, f"http://127.0.0.1:{port}/objects?format=csv"]))
            time.sleep(3.0)
    return float(late)


def in_process(home: Path, years: Years, gates: Gates) -> None:
    """Truth, states, a flipped bit, updates."""
    live, chance = opened(home, years), np.random.default_rng(4)
    live.start()
    times_ns = chance.integers(BEGIN_NS + DAY_NS, years.end_ns, 2_000).tolist()
    with live.view() as view:
        for number, time_ns in zip(chance.choice(years.numbers, 2_000).tolist(), times_ns, strict=True):
            (found,) = view.in_force_at(number, [time_ns])
            reached_ns = time_ns + EPOCH_TOLERANCE_NS
            expected = years.epoch_before(number, reached_ns), years.mean_motions[number - 1]
            assert (found.epoch_time_ns, found.mean_motion_rev_per_day) == expected, (number, time_ns, found)
        for number in chance.choice(years.numbers, 20).tolist():
            epochs = [each.epoch_time_ns for each in view.history(number)]
            last_ns = min(int(years.last_ns[number - 1]), years.end_ns - 1)
            assert epochs == list(range(int(years.first_ns[number - 1]), last_ns + 1, INTERVAL_NS)), number
        print("2,000 sets in force at random times and 20 whole histories are as they were made")
        some, dead = chance.choice(years.numbers, 1_000, replace=False).tolist(), years.numbers[::10].tolist()
        old_ns = BEGIN_NS + (years.end_ns - BEGIN_NS) * 2 // 5
        for what, time_ns in (("now", years.end_ns - 1), (f"{(years.end_ns - old_ns) // DAY_NS} days ago", old_ns)):
            seconds = best(partial(states, view, some, [time_ns]))
            gates.judge(f"states of 1,000 objects {what}", seconds, 0.5, "s")
        at_end = [years.end_ns - 1]
        per_object = best(lambda: [view.in_force_at(number, at_end) for number in dead]) / len(dead)
        print(f"set in force of an object that ended: {1000 * per_object:.2f} ms")
    flipped(live)
    gates.judge("update of one object", updated(live, home, years), 50, "ms")
    live.close()


def flipped(live: LiveCatalogue) -> None:
    """A bit of the oldest history, flipped while it serves, is found by looks alone, named and repaired."""
    index = live._served[0]
    assert index is not None and isinstance(index.engine, RocksDbEngine)
    name = min((each for each in index.engine._map.live_files() if each["start_key"][:1] == b"h"), key=_begin)["name"]
    (file,) = index.engine._directory.glob(f"*{name.rpartition('/')[2]}")
    with file.open("r+b") as damaged:
        damaged.seek(file.stat().st_size // 1000)
        found = damaged.read(1)[0]
        damaged.seek(-1, 1)
        damaged.write(bytes([found ^ 1]))
    looks, began, before = 0, time.perf_counter(), index
    while live._served[0] is before:
        looked = time.perf_counter()
        live.examine()
        looks += 1
        if live.health()["damage"]:
            print(f"a flipped bit was found at look {looks}: {live.health()['damage'][:160]}")
            print(f"a look: {1000 * (looked - began) / max(looks - 1, 1):.1f} ms")
            began = time.perf_counter()
            live.refresh()
            print(f"and repaired in {passed(began):.0f} s, while it served")
            break
    assert live.health()["damage"] is None


def _begin(file: dict[str, Any]) -> bytes:
    begin: bytes = file["start_key"]
    return begin


def updated(live: LiveCatalogue, home: Path, years: Years) -> float:
    """One new set of one object, committed and taken in; the median, ms."""
    lake, index, times_ms, steps_ms = lake_of(home, years), live._served[0], [], []
    assert index is not None and live.binding is not None
    for turn in range(7):
        epochs = np.array([years.end_ns + turn * HOUR_NS])
        columns = {name: values[:1] for name, values in years.newest().items()} | {"epoch_time_ns": epochs}
        number = len(years.numbers) + 1 + turn  # the catalogue, as a table that is only appended to, has each once
        columns |= {"norad_id": np.array([number]), "record_number": np.array([number])}
        commit(lake, ELEMENT_SETS, whole(ELEMENT_SETS, columns))
        rows = whole(ORBITAL_CATALOG, columns)
        catalogued(lake, rows)
        began = time.perf_counter()
        assert live.refresh()
        times_ms.append(1000 * passed(began))
        began = time.perf_counter()
        index.update(live.binding, rows, rows)  # the same again: it writes as much
        steps_ms.append(1000 * passed(began))
        found = live.get(number)
        assert found is not None and found.epoch_time_ns == epochs[0]
    print(
        f"update of one object: median {np.median(times_ms):.0f} ms, of it the index {np.median(steps_ms):.1f} ms, "
        "synced; the rest reads the table's log"
    )
    return float(np.median(times_ms))


def best(run: Callable[[], Any]) -> float:
    """Least seconds of three runs."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        run()
        times.append(passed(began))
    return min(times)


def passed(began: float) -> float:
    """Seconds since."""
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
