"""The checkpoint as text: what one version of the platform writes, every later one must read."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.lake.checkpoint import (
    SCHEMA_VERSION,
    Checkpoint,
    Recovery,
    SegmentRef,
    TableSnapshot,
    TableWindow,
)
from sda_platform.lake.errors import InvariantError

GOLDEN = Path(__file__).parents[2] / "data" / "checkpoints"
V1_SHA256 = "ade859c5fb5387e6a9650650f11bb37709c240eb1510491afeccb47af33d5da8"
V2_SHA256 = "ea867007aa3be29b7413ecab48e1b1326b574929002a5602789a2cf0d224cfd8"
V3_SHA256 = "49b90e6415a098edeb83cfbf925c7d6807e794ade135e80d3360222d26e6e3bf"

V1 = Checkpoint(
    table="fused_tracks",
    sequence=42,
    previous_sha256="ab" * 32,
    as_of_ns=1_730_419_205_123_456_789,
    run_id="6a1f0d0e-0000-4000-8000-000000000001",
    nonce="6a1f0d0e-0000-4000-8000-000000000002",
    windows=(TableWindow("observations", 122, 130, 123, 131), TableWindow("orbital_catalog", 3, 3, 4, 4)),
    snapshots=(TableSnapshot("orbital_catalog", 17, 3),),
    segments=(
        SegmentRef("radar", "r-1.seg", "0f" * 32, 7200, 100),
        SegmentRef("radar", "r-2.seg", "1f" * 32, 71, 1, "r-2.seg: truncated: has 71 bytes, metadata says 72 é"),
    ),
    counts={"landed": 101, "valid": 100, "dead": 1},
    watermarks={"radar": 1_730_419_205_000_000_000, "pipeline": 1_730_419_175_000_000_000},
    schema_version=1,
)
V2 = replace(
    V1,
    windows=(replace(V1.windows[0], upto_sha256="cd" * 32), V1.windows[1]),
    recovery=Recovery(40, 41, "commit 41 (version 42): not a checkpoint"),
    schema_version=2,
)
CHECKPOINT = replace(V2, settings={"fusion": {"window_s": 30, "sources": ["radar", "isl"]}}, schema_version=3)

texts = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
maps = st.dictionaries(texts, numbers, max_size=3)
windows = st.builds(TableWindow, texts, numbers, numbers, numbers, numbers, st.none() | texts)
checkpoints = st.builds(
    Checkpoint,
    texts,
    numbers,
    texts,
    numbers,
    texts,
    texts,
    st.lists(st.builds(TableWindow, texts, numbers, numbers, numbers, numbers, st.none() | texts), max_size=3).map(
        tuple
    ),
    st.lists(st.builds(TableSnapshot, texts, numbers, numbers), max_size=3).map(tuple),
    st.lists(st.builds(SegmentRef, texts, texts, texts, numbers, numbers, st.none() | texts), max_size=3).map(tuple),
    maps,
    maps,
    st.none() | st.builds(Recovery, numbers, numbers, texts),
    st.none() | st.dictionaries(texts, st.dictionaries(texts, numbers | texts | st.booleans(), max_size=3), max_size=2),
)


@given(checkpoints)
def test_a_checkpoint_survives_its_json(checkpoint: Checkpoint) -> None:
    text = checkpoint.to_json()
    again = Checkpoint.from_json(text)
    assert again == checkpoint
    assert (again.to_json(), again.sha256) == (text, checkpoint.sha256)


@pytest.mark.parametrize(
    ("version", "checkpoint", "sha256"),
    [(1, V1, V1_SHA256), (2, V2, V2_SHA256), (3, CHECKPOINT, V3_SHA256)],
)
def test_a_checkpoint_of_any_version_reads_and_hashes_the_same_for_ever(
    version: int, checkpoint: Checkpoint, sha256: str
) -> None:
    text = (GOLDEN / f"v{version}.json").read_text(encoding="utf-8").strip()
    assert Checkpoint.from_json(text) == checkpoint
    assert checkpoint.to_json() == text, "the stored form changed: raise SCHEMA_VERSION and keep reading the old one"
    assert checkpoint.sha256 == sha256, "every chain in the field would break at its newest commit"


def test_a_newer_platforms_checkpoint_is_refused_before_anything_is_written_on_top_of_it() -> None:
    text = replace(CHECKPOINT, schema_version=SCHEMA_VERSION + 1).to_json()
    with pytest.raises(InvariantError, match="fused_tracks has schema version 4, this platform knows up to 3: update"):
        Checkpoint.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "not json",
        "{}",
        '{"schema_version": "one"}',
        json.dumps({**json.loads(CHECKPOINT.to_json()), "surprise": 1}),
        json.dumps({k: v for k, v in json.loads(CHECKPOINT.to_json()).items() if k != "nonce"}),
        json.dumps({**json.loads(CHECKPOINT.to_json()), "windows": [{"table": "x"}]}),
        json.dumps({**json.loads(CHECKPOINT.to_json()), "segments": None}),
    ],
)
def test_text_that_is_no_checkpoint_is_an_invariant_error(text: str) -> None:
    with pytest.raises(InvariantError, match="not a checkpoint"):
        Checkpoint.from_json(text)


def test_the_hash_covers_every_field() -> None:
    changed = {
        "table": "x", "sequence": 1, "previous_sha256": "x", "as_of_ns": 1, "run_id": "x", "nonce": "x", "windows": (),
        "snapshots": (), "segments": (), "counts": {}, "watermarks": {}, "recovery": None,
        "settings": None,
        "schema_version": 0,
    }  # fmt: skip
    hashes = {replace(CHECKPOINT, **{name: value}).sha256 for name, value in changed.items()}
    assert len(hashes | {CHECKPOINT.sha256}) == len(changed) + 1
    assert set(changed) == set(Checkpoint.__dataclass_fields__)
