"""The catalogue's merge and its lookups against their targets and against peers, each after an equality check.

    python benchmarks/catalogue.py

`catalogue_http.py` has the lookups over HTTP, `catalogue_lag.py` the lag.

Merge: 500,000 element sets from five sources, ids 1 to 100,000 in each, one set in force per object. Peers on the same
Arrow table: pandas, DuckDB and Polars, and the k-way merge in plain Python.
"""

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import skyfield.api
from sgp4 import omm
from sgp4.api import Satrec
from skyfield.sgp4lib import EarthSatellite

from sda_platform.catalog.merge import best_sets
from sda_platform.clock import MissionClock
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.segments import Sender
from sda_platform.formats.tle_writing import MOST_ALPHA_5, encode_tles
from sda_platform.lake.lake import Lake, without_session
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.serving.index import Binding, CatalogueIndex
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.record import COLUMNS
from sda_platform.serving.store import IndexStore
from sda_platform.simulation.reference import reference_catalogue
from sda_platform_tests.support.element_merge import merge_sorted_sources
from sda_platform_tests.support.serving_engines import ENGINES

SOURCES = ("18 SDS", "ESA SST", "EXOANALYTIC", "LEOLABS", "NUMERICA")
OBJECTS = 100_000
SENDER = Sender("benchmark", rank=10)
DAY_NS = 86_400 * 10**9
AS_OF_NS = 20_000 * DAY_NS
REPEATS = 5
SKYFIELD_SETS = 2_000
"""Of the catalogue, as skyfield is slow."""


def main() -> None:
    """Run and print."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    merge()
    parsing()
    lookups()
    puts()


def merge() -> None:
    """The set in force of each object by every means, and the time of each."""
    table = five_sources()
    means: dict[str, Callable[[], list[int]]] = {
        "ours, by columns": lambda: ours(table),
        "DuckDB": lambda: with_duckdb(table),
        "Polars": lambda: with_polars(table),
        "pandas": lambda: with_pandas(table),
    }
    expected = ours(table)
    rows = [source.to_pylist() for source in (table.slice(n * OBJECTS, OBJECTS) for n in range(len(SOURCES)))]
    began = time.perf_counter()
    oracle = [best["record_number"] for best, _ in merge_sorted_sources(rows, AS_OF_NS)]
    oracle_s = time.perf_counter() - began
    assert oracle == expected, "the k-way merge finds other sets"
    times = {}
    for name, run in means.items():
        assert run() == expected, f"{name} finds other sets"
        times[name] = min(timed(run) for _ in range(REPEATS))
    print(f"merge of {table.num_rows:,} sets, {len(expected):,} objects, equal results:")
    for name, seconds in times.items():
        print(f"  {name}: {seconds * 1000:.0f} ms, {seconds / times['ours, by columns']:.2f} of ours")
    print(f"  k-way merge in plain Python (oracle): {oracle_s:.2f} s")


def five_sources() -> pa.Table:
    """The capstone's data (CM): five sources by id, epochs of half a day, one seed each."""
    parts = []
    for number, source in enumerate(SOURCES):
        chance = np.random.default_rng(number)
        parts.append(
            pa.table(
                {
                    "norad_id": np.arange(1, OBJECTS + 1),
                    "epoch_time_ns": AS_OF_NS - DAY_NS + (chance.random(OBJECTS) * 43_200).astype(np.int64) * 10**9,
                    "source_priority": np.full(OBJECTS, 10 * (number % 2)),
                    "element_set_number": np.full(OBJECTS, 999),
                    "originator": [source] * OBJECTS,
                    "segment_sha256": [f"{number:064x}"] * OBJECTS,
                    "record_number": np.arange(OBJECTS) + number * OBJECTS,
                }
            )
        )
    return pa.concat_tables(parts).combine_chunks()


def ours(table: pa.Table) -> list[int]:
    """`catalog.merge`, with which the check of the catalogue merges."""
    found: list[int] = table["record_number"].to_numpy()[best_sets(table, AS_OF_NS)].tolist()
    return found


_BY = ["epoch_time_ns", "source_priority", "element_set_number", "originator", "record_number"]


def with_duckdb(table: pa.Table) -> list[int]:
    """A group-by with the greatest struct."""
    connection = duckdb.connect()
    connection.register("sets", table)
    query = f"""select arg_max(record_number, row({", ".join(_BY)})) from sets group by norad_id order by norad_id"""
    return [row[0] for row in connection.execute(query).fetchall()]


def with_polars(table: pa.Table) -> list[int]:
    """A sort, then the last of each group."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.sort(["norad_id", *_BY]).group_by("norad_id", maintain_order=True).last()["record_number"].to_list()


def with_pandas(table: pa.Table) -> list[int]:
    """A sort, then the last of each group."""
    frame: pd.DataFrame = table.to_pandas()
    best = frame.sort_values(["norad_id", *_BY]).drop_duplicates("norad_id", keep="last")
    numbers: list[int] = best["record_number"].tolist()
    return numbers


def parsing() -> None:
    """Records per second of processor time from OMM CSV and two-line sets, and those of python-sgp4 and skyfield."""
    data = reference_catalogue()
    lines = encode_tles(each for each in element_sets(catalogue(30_000)) if each.norad_id <= MOST_ALPHA_5)
    text_lines = [line for line in lines.decode().splitlines() if line[:2] in ("1 ", "2 ")]
    pairs = list(zip(text_lines[::2], text_lines[1::2], strict=True))
    text, scale = data.decode(), skyfield.api.load.timescale(builtin=True)
    few = "".join(text.splitlines(keepends=True)[: SKYFIELD_SETS + 1])

    def with_skyfield() -> list[EarthSatellite]:
        return [EarthSatellite.from_omm(scale, fields) for fields in omm.parse_csv(io.StringIO(few))]

    count = data.count(b"\n") - 1
    readers: list[tuple[str, int, Callable[[], Any]]] = [
        ("OMM CSV, ours", count, partial(decode_element_sets, data, segment_format="omm-csv")),
        (
            "OMM CSV, python-sgp4",
            count,
            lambda: [omm.initialize(Satrec(), f) for f in omm.parse_csv(io.StringIO(text))],
        ),
        ("OMM CSV, skyfield", SKYFIELD_SETS, with_skyfield),
        ("two-line sets, ours", len(pairs), partial(decode_element_sets, lines, segment_format="tle")),
        ("two-line sets, python-sgp4", len(pairs), lambda: [Satrec.twoline2rv(*pair) for pair in pairs]),
        (
            "two-line sets, skyfield",
            SKYFIELD_SETS,
            lambda: [EarthSatellite(*p, ts=scale) for p in pairs[:SKYFIELD_SETS]],
        ),
    ]
    compare(decode_element_sets(lines, segment_format="tle"), pairs)
    for name, records, read in readers:
        print(f"{name}: {records / processor_s(read):,.0f} records per second of one core")


def compare(ours: pa.Table, pairs: list[tuple[str, str]]) -> None:
    """Our reading of two lines holds what python-sgp4 reads, bit for bit in what it keeps as it is."""
    assert ours["error"].null_count == ours.num_rows == len(pairs)
    peers = [Satrec.twoline2rv(*pair) for pair in pairs]
    assert ours["norad_id"].to_pylist() == [each.satnum for each in peers]
    assert ours["eccentricity"].to_pylist() == [each.ecco for each in peers]
    assert np.allclose(ours["bstar_per_earth_radius"].to_numpy(), [each.bstar for each in peers], rtol=1e-15)
    assert np.allclose(np.radians(ours["raan_deg"].to_numpy()), [each.nodeo for each in peers], rtol=1e-15)


def processor_s(run: Callable[[], Any]) -> float:
    """Least processor time of three runs, seconds: other work of the machine does not count."""
    times = []
    for _ in range(3):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def lookups() -> None:
    """Bulk load and point lookups of every engine that keeps the contract."""
    rows = catalogue(30_000)
    chance = np.random.default_rng(1)
    for name, engine in ENGINES.items():
        with tempfile.TemporaryDirectory() as directory:
            index = CatalogueIndex(engine(Path(directory)))
            load_s = timed(partial(index.load, Binding(0, 1, "0" * 64, 1, 0), rows, ()))
            wanted = chance.choice(rows["norad_id"].to_numpy(), 50_000).tolist()
            times_us = []
            for number in wanted:
                began = time.perf_counter_ns()
                index.get(number)
                times_us.append((time.perf_counter_ns() - began) / 1000)
            median, late = np.percentile(times_us, [50, 99])
            print(
                f"{name}: bulk load of {rows.num_rows:,} objects {load_s:.2f} s; lookup in process "
                f"median {median:.1f} us, 99 % below {late:.1f} us"
            )
            pairs = [(key.to_bytes(8, "big"), bytes(82)) for key in range(100_000)]
            write_s = timed(partial(write_in_batches, index, pairs))
            print(f"{name}: {100_000 / write_s:,.0f} durable writes of 82 bytes per second, in batches of 10,000")
            index.engine.close()


def write_in_batches(index: CatalogueIndex, pairs: list[tuple[bytes, bytes]]) -> None:
    """Ten synced batches."""
    for start in range(0, len(pairs), 10_000):
        index.engine.write(pairs[start : start + 10_000])


def puts() -> None:
    """Durable puts through the landing zone, bursts, and the recovery of what was not consumed."""
    sets = element_sets(catalogue(12_000))
    with tempfile.TemporaryDirectory() as directory:
        live, source = endpoint(Path(directory))
        group = Puts(live, source.land)
        seconds = timed(lambda: [each.result() for each in [group.put([one], SENDER) for one in sets[:1800]]])
        print(f"1,800 single puts, all durable and served: {seconds:.2f} s, {1800 / seconds:,.0f} per second")
        seconds = timed(lambda: group.put(sets, SENDER).result())
        print(f"12,000 sets in one put, durable and served: {seconds:.2f} s, {12_000 / seconds:,.0f} per second")
        group.close()
        live.close()
    with tempfile.TemporaryDirectory() as directory:
        live, source = endpoint(Path(directory))
        group = Puts(live, source.land)
        numbered = [one for copy in range(10) for one in shifted(sets[:10_000], copy)]
        for start in range(0, len(numbered), 10_000):
            group.put(numbered[start : start + 10_000], SENDER).result()
        group.close()
        live.close()
        again, _ = endpoint(Path(directory), is_started=False)
        seconds = timed(again.start)
        print(f"recovery of {len(again.pending):,} unconsumed sets before the index serves: {seconds * 1000:.0f} ms")
        again.close()


def shifted(sets: list[ElementSet], copy: int) -> list[ElementSet]:
    """The sets with other numbers."""
    return [replace(each, norad_id=each.norad_id + copy) for each in sets]


def endpoint(home: Path, *, is_started: bool = True) -> tuple[LiveCatalogue, LakeSource]:
    """A live catalogue of an empty lake."""
    source = LakeSource(Lake(str(home / "lake"), MissionClock(), without_session), str(home / "landing"))
    live = LiveCatalogue(source, IndexStore(home / "serving"), time.time_ns)
    if is_started:
        live.start()
    return live, source


def catalogue(count: int) -> pa.Table:
    """Up to ``count`` real objects, repeated with other numbers where there are fewer, with the index's columns."""
    rows = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    more = rows.set_column(
        rows.column_names.index("norad_id"), "norad_id", pa.array(rows["norad_id"].to_numpy() + 1_000_000)
    )
    rows = pa.concat_tables([rows, more]).slice(0, count)
    constant: dict[str, Any] = {
        "source_priority": 10, "received_time_ns": 0, "commit_sequence": 1, "segment_sha256": "ab" * 32,
        "source_name": "benchmark",
    }  # fmt: skip
    for name, value in constant.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows))
    return rows.select(COLUMNS)


def element_sets(rows: pa.Table) -> list[ElementSet]:
    """Rows as the formats write them."""
    names = [name for name in ElementSet.__dataclass_fields__ if name in rows.column_names]
    columns = [rows[name].to_pylist() for name in names]
    return [ElementSet(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def timed(run: Callable[[], Any]) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
