"""Rows of some commits, read from the files that the log's last texts name: as the whole table has them, whatever was
written, compacted, restored, cut or removed in between."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import recent_files
from sda_platform.lake.commit_spans import committed_in
from sda_platform.lake.delta_log import commit_file
from sda_platform.lake.lake import Lake
from sda_platform.lake.recent_files import files_with
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform_tests.support.delta_tables import commit, lake_at


def replace(delta: DeltaTable, _: random.Random) -> None:
    """As a MERGE that copies the rows which it leaves as they are."""
    found = pa.table(delta.to_pyarrow_table())
    delta.delete()
    write_deltalake(delta.table_uri, found, mode="append")


def restore(delta: DeltaTable, chance: random.Random) -> None:
    last = delta.version() - chance.randint(1, 2)
    if last >= 0 and opens(delta.table_uri, last):
        delta.restore(last)


def cut(delta: DeltaTable, _: random.Random) -> None:
    """Leave of the log what begins with a checkpoint, and has the platform's newest commit."""
    delta.create_checkpoint()
    texts = ((each, commit_file(delta.table_uri, each)) for each in range(delta.version(), -1, -1))
    newest = next(each for each, file in texts if '{"txn"' in file.read_text())
    for each in range(newest):
        commit_file(delta.table_uri, each).unlink(missing_ok=True)


STEPS: dict[str, Callable[[DeltaTable, random.Random], object]] = {
    "replace": replace,
    "restore": restore,
    "cut": cut,
    "compact": lambda delta, _: delta.optimize.compact(),
    "delete": lambda delta, chance: delta.delete(f"commit_sequence = {chance.randint(1, 5)}"),
    "checkpoint": lambda delta, _: delta.create_checkpoint(),
    "property": lambda delta, _: delta.alter.set_table_properties({"delta.appendOnly": "false"}),
}


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["append", *STEPS]) | st.just("append"), max_size=12), st.integers(0, 2**32))
def test_rows_of_commits_are_those_of_the_whole_table(steps: list[str], seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        lake = lake_at(Path(directory))
        append(lake)
        for step in steps:
            if step == "append":
                append(lake)
            else:
                STEPS[step](DeltaTable(lake.log(OBSERVATIONS).uri), chance)
        log = lake_at(Path(directory)).log(OBSERVATIONS)
        head = log.head()
        for version in (None, *filter(partial(opens, log.uri), range(max(head.version - 2, 0), head.version + 1))):
            for after in range(head.sequence + 1):
                span = (after, chance.randint(after, head.sequence))
                whole = log.rows(["observation_id", COMMIT_SEQUENCE], committed_in(span), version)
                assert ordered(log.rows_of(span, whole.column_names, version)) == ordered(whole)


def opens(uri: str, version: int) -> bool:
    """Whether the whole table can be read at a version: a log that was cut has none before its checkpoint."""
    try:
        return DeltaTable(uri, version=version).version() == version
    except DeltaError:
        return False


def append(lake: Lake) -> None:
    number = lake.head(OBSERVATIONS).sequence
    commit(lake, OBSERVATIONS, [{"observation_id": f"n{number}-{each}"} for each in range(2)])


def ordered(rows: pa.Table) -> pa.Table:
    return rows.sort_by("observation_id")


def add(name: str, **action: object) -> str:
    return json.dumps({"add": {"path": name, "size": 1, **action}})


def txn(sequence: int) -> str:
    return json.dumps({"txn": {"appId": "ours", "version": sequence}})


def stats(least: int, most: int) -> str:
    return json.dumps({"minValues": {"commit_sequence": least}, "maxValues": {"commit_sequence": most}})


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([f"{txn(6)}\n{add('b')}", f"{txn(5)}\n{add('a')}"], {"b": 1}),
        ([f"{txn(6)}\n{add('b', stats=stats(7, 7))}", txn(5)], {}),
        ([f"{txn(6)}\n{add('b', stats=stats(2, 6))}", txn(5)], {"b": 1}),
        ([f"{txn(6)}\n{add('with%20space')}", txn(5)], {"with space": 1}),
        ([json.dumps({"remove": {"path": "b"}}), f"{txn(6)}\n{add('b')}", txn(5)], {}),
        ([f"{txn(6)}\n{add('b', deletionVector={'storageType': 'u'})}", txn(5)], None),
        ([f"{txn(6)}\n{add('b')}"], None),
        ([f"{txn(6)}\n{add('b')}", "", txn(5)], None),
        ([f"{txn(6)}\n{add('b')[:-4]}", txn(5)], None),
        ([f"{txn(90)}\n{add('b')}", txn(5)], None),
    ],
)
def test_what_the_texts_do_not_show_is_read_from_the_whole_table(
    texts: list[str], found: dict[str, int] | None
) -> None:
    assert files_with("ours", (5, 6), ((9 - place, text) for place, text in enumerate(texts))) == found


def test_no_more_texts_are_read_than_opening_the_table_would_take() -> None:
    read = []

    def texts() -> Iterator[tuple[int, str]]:
        for version in range(1_000, 0, -1):
            read.append(version)
            yield version, json.dumps({"commitInfo": {}})

    assert files_with("ours", (5, 6), texts()) is None
    assert len(read) == recent_files._MOST_VERSIONS + 1
