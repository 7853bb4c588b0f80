"""The merge of 500,000 element sets of five sources on Spark, against the merge in process.

    python benchmarks/catalogue_spark.py [--engines 3] [--repeats 3]

The first run on each engine is its first statement: classes are loaded and code is generated. `sda up` has warmed its
engine before any run.
`catalog.transforms.improvements`, with which `orbital_catalog` merges, on the engine that `sda up` starts. Its sets are
those of `benchmarks/catalogue.py`, as a file of Parquet with every column of `element_sets`. The results must be equal.
"""

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from catalogue import AS_OF_NS, five_sources, ours
from local_engine import local_engine
from pyspark.sql import SparkSession

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.catalog.transforms import improvements

_CONSTANT = {
    "mean_motion_rev_per_day": 15.5,
    "eccentricity": 0.001,
    "inclination_deg": 51.6,
    "raan_deg": 1.0,
    "arg_of_pericenter_deg": 2.0,
    "mean_anomaly_deg": 3.0,
    "bstar_per_earth_radius": 1e-4,
}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", type=int, default=3, help="engines, each started for these runs")
    parser.add_argument("--repeats", type=int, default=3, help="runs on each engine, of which each is printed")
    chosen = parser.parse_args()
    sets = five_sources()
    expected = ours(sets)
    for _ in range(chosen.engines):
        with tempfile.TemporaryDirectory() as directory, local_engine(Path(directory)) as spark:
            path = Path(directory) / "sets.parquet"
            pq.write_table(complete(sets), path)
            times_s = [timed_merge(spark.spark_session, path, expected) for _ in range(chosen.repeats)]
        first, *others = [f"{seconds:.2f}" for seconds in times_s]
        print(
            f"merge of {sets.num_rows:,} sets on Spark, equal result, rows fetched: {first} s as the first statement "
            f"of an engine, then {', '.join(others) or 'none'} s",
            flush=True,
        )


def timed_merge(session: SparkSession, path: Path, expected: list[int]) -> float:
    """Seconds of one merge, whose result must be ``expected``."""
    began = time.perf_counter()
    rows = merged(session, path)
    seconds = time.perf_counter() - began
    assert rows.sort_by("norad_id")["record_number"].to_pylist() == expected, "Spark finds other sets"
    return seconds


def complete(sets: pa.Table) -> pa.Table:
    """The sets with all columns of `element_sets`; those that decide nothing are constant or null."""
    columns = {}
    for field in ELEMENT_SETS.arrow_schema:
        if field.name in sets.column_names:
            columns[field.name] = sets[field.name].cast(field.type)
        else:
            columns[field.name] = pa.array([_CONSTANT.get(field.name)] * sets.num_rows, field.type)
    return pa.table(columns)


def merged(session: SparkSession, path: Path) -> pa.Table:
    """The catalogue that the sets make, in an empty one."""
    current = session.createDataFrame([], ORBITAL_CATALOG.schema)
    return improvements(session.read.parquet(str(path)), current, as_of_ns=AS_OF_NS).toArrow()


if __name__ == "__main__":
    main()
