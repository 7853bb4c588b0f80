"""No code that makes rows uses the clock, chance, or an order that nothing fixes (spec 66); the lint finds each."""

from pathlib import Path

import pytest

from sda_platform_tests.support.determinism import PACKAGE, offences, row_makers

HEAD = """
import os
import secrets
import time
import uuid
from datetime import datetime
from datetime import datetime as dt
from time import time_ns
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.functions import rand
from pyspark.sql.window import Window as W

"""

PLANTED = {
    "current_timestamp": "df.withColumn('t', F.current_timestamp())",
    "current_date": "df.withColumn('t', F.current_date())",
    "now": "df.withColumn('t', F.now())",
    "rand": "df.withColumn('r', F.rand())",
    "rand with a seed": "df.withColumn('r', F.rand(7))",
    "rand by its name": "df.withColumn('r', rand())",
    "randn": "df.withColumn('r', F.randn(7))",
    "uuid": "df.withColumn('id', F.uuid())",
    "in SQL": "df.withColumn('id', F.expr('concat(uuid(), 1)'))",
    "in selectExpr": "df.selectExpr('current_timestamp() AS t')",
    "order in SQL": "df.selectExpr('first(x)')",
    "monotonically_increasing_id": "df.withColumn('id', F.monotonically_increasing_id())",
    "spark_partition_id": "df.withColumn('id', F.spark_partition_id())",
    "input_file_name": "df.withColumn('f', F.input_file_name())",
    "collect_list": "df.groupBy('k').agg(F.collect_list('x'))",
    "collect_set": "df.groupBy('k').agg(F.collect_set('x'))",
    "first": "df.groupBy('k').agg(F.first('x'))",
    "last": "df.groupBy('k').agg(F.last('x'))",
    "first over a window without order": "F.first('x').over(W.partitionBy('k'))",
    "first by its name": "df.groupBy('k').agg({'x': 'first'})",
    "first of Arrow": "rows.group_by('k').aggregate([('x', 'first')])",
    "dropDuplicates by columns": "df.dropDuplicates(['k'])",
    "sample": "df.sample(0.5)",
    "shuffle": "df.withColumn('x', F.shuffle('x'))",
    "datetime.now": "datetime.now()",
    "datetime.now under another name": "dt.now(tz)",
    "time.time": "time.time()",
    "time.time_ns by its name": "time_ns()",
    "time.monotonic": "time.monotonic()",
    "random": "import random\nrandom.random()",
    "random without a seed": "import random\nrandom.Random()",
    "numpy's global chance": "np.random.normal()",
    "numpy without a seed": "np.random.default_rng()",
    "uuid4": "uuid4()",
    "uuid1": "uuid.uuid1()",
    "urandom": "os.urandom(8)",
    "secrets": "secrets.token_hex(4)",
    "rows from a set": "[{'k': k} for k in {3, 1, 2}]",
    "rows from a call of set": "for k in set(keys):\n    rows.append(k)",
    "a list of a set": "list(set(keys))",
    "an array of a set": "pa.array({k for k in keys})",
    "a name of a set": "def f(keys):\n    known = set(keys)\n    return [k for k in known]",
    "a union of sets": "def f(a, b):\n    return [k for k in set(a) | set(b)]",
    "a text of a set": "', '.join({str(k) for k in keys})",
    "an excuse without a use": "x = 1  # deterministic: nothing here",
}

SOUND = {
    "a sorted list": "df.groupBy('k').agg(F.sort_array(F.collect_list('x')))",
    "a window with an order": "F.first('x').over(W.partitionBy('k').orderBy('t'))",
    "a seeded generator": "np.random.default_rng(7).normal()",
    "a generator named random": "def f(seed):\n    random = np.random.default_rng(seed)\n    return random.normal()",
    "a sorted set": "[k for k in sorted(set(keys))]",
    "a sorted comprehension": "sorted(k for k in set(keys))",
    "a set of a set": "{k for k in set(keys)}",
    "membership": "x in {1, 2}",
    "an id of content": "uuid.uuid5(space, 'x')",
    "all columns": "df.dropDuplicates()",
    "a maximum": "df.groupBy('k').agg(F.max('x'))",
    "an excuse": "time.time()  # deterministic: only logged",
    "a set that became a list": "def f(k):\n    known = set(k)\n    known = sorted(known)\n    return list(known)",
}


def test_the_code_that_makes_rows_is_deterministic_spec_66() -> None:
    found = [o for path in row_makers() for o in offences(path.read_text(), str(path.relative_to(PACKAGE.parent)))]
    assert not found, "\n".join(map(str, found))


def test_every_module_of_assets_and_transforms_and_what_it_calls_is_looked_at_spec_66() -> None:
    looked_at = {str(path.relative_to(PACKAGE)) for path in row_makers()}
    declarations = ("@table_asset(", "@landing_asset(")
    bodies = [p for p in PACKAGE.rglob("*.py") if any(each in p.read_text() for each in declarations)]
    assert bodies and {str(p.relative_to(PACKAGE)) for p in bodies} <= looked_at
    assert {
        "ingest/transforms.py", "conjunction/transforms.py", "fusion/fuse.py", "conjunction/screening_tasks.py",
        "orbits/propagation.py", "formats/records.py", "delivery/outbox.py",
    } <= looked_at  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_planted_violation_is_found_spec_66(planted: str) -> None:
    found = offences(HEAD + planted)
    assert len(found) == 1, list(map(str, found))
    assert found[0].line > HEAD.count("\n")


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_what_is_deterministic_is_left_alone_spec_66(sound: str) -> None:
    assert offences(HEAD + sound) == []


def test_an_excuse_needs_a_reason_spec_66() -> None:
    found = offences(HEAD + "time.time()  # deterministic:")
    assert [o.what for o in found] == [
        "time.time() reads the clock: use the plan's as_of",
        "allows something without a reason",
    ]


def test_what_a_row_maker_imports_is_looked_at_too_spec_66(tmp_path: Path) -> None:
    package = tmp_path / "sda_platform"
    (package / "catalog").mkdir(parents=True)
    (package / "lake").mkdir()
    (package / "catalog" / "assets.py").write_text(
        "from sda_platform.catalog import helper\nfrom sda_platform.lake import x\n"
    )
    (package / "catalog" / "helper.py").write_text("from sda_platform.catalog.deeper import f\n")
    (package / "catalog" / "deeper.py").write_text("def f(): ...\n")
    (package / "catalog" / "unused.py").write_text("")
    (package / "lake" / "x.py").write_text("")
    assert [path.name for path in row_makers(package)] == ["assets.py", "deeper.py", "helper.py"]
