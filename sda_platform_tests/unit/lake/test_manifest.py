"""The commit manifest as text: one schema version is written, some earlier ones are read, every other is refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.lake.errors import InvariantError, OtherSchemaVersion
from sda_platform.lake.manifest import (
    SCHEMA_VERSION,
    CommitManifest,
    SegmentRef,
    TableSnapshot,
    TableWindow,
)

GOLDEN = Path(__file__).parents[2] / "data" / "manifests"
V7_SHA256 = "598025fb6a043fc7d4ce2581ee9a8d178299590f4680e7d2d6d8f24c29b384f7"

MANIFEST = CommitManifest(
    table="fused_tracks",
    sequence=42,
    previous_sha256="ab" * 32,
    as_of_ns=1_730_419_205_123_456_789,
    run_id="6a1f0d0e-0000-4000-8000-000000000001",
    nonce="6a1f0d0e-0000-4000-8000-000000000002",
    windows=(TableWindow("observations", 122, 130, 123, 131, "cd" * 32), TableWindow("orbital_catalog", 0, 0, -1, -1)),
    snapshots=(TableSnapshot("orbital_catalog", 17, 3),),
    segments=(
        SegmentRef("radar", "r-1.seg", "0f" * 32, 7200, 100),
        SegmentRef("radar", "r-2.seg", "1f" * 32, 71, 1, "r-2.seg: truncated: has 71 bytes, metadata says 72 é"),
    ),
    counts={"landed": 101, "valid": 100, "dead": 1},
    watermarks={"radar": 1_730_419_205_000_000_000, "pipeline": 1_730_419_175_000_000_000},
    settings={"fusion": {"window_s": 30, "sources": ["radar", "isl"]}},
    code_version="0.1.0+67d4a9bd14e8",
    origin={"trigger": "sensor raw_records_landed", "operator": "sda@host"},
)

texts = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
maps = st.dictionaries(texts, numbers, max_size=3)
windows = st.builds(TableWindow, texts, numbers, numbers, numbers, numbers, texts)
manifests = st.builds(
    CommitManifest,
    texts,
    numbers,
    texts,
    numbers,
    texts,
    texts,
    st.lists(windows, max_size=3).map(tuple),
    st.lists(st.builds(TableSnapshot, texts, numbers, numbers), max_size=3).map(tuple),
    st.lists(st.builds(SegmentRef, texts, texts, texts, numbers, numbers, st.none() | texts), max_size=3).map(tuple),
    maps,
    maps,
    st.none() | st.dictionaries(texts, st.dictionaries(texts, numbers | texts | st.booleans(), max_size=3), max_size=2),
    texts,
    origin=st.none() | st.dictionaries(texts, texts, max_size=2),
)


@given(manifests)
def test_a_manifest_survives_its_json(manifest: CommitManifest) -> None:
    text = manifest.to_json()
    again = CommitManifest.from_json(text)
    assert again == manifest
    assert (again.to_json(), again.sha256) == (text, manifest.sha256)


def test_the_stored_form_and_its_hash_do_not_change_within_a_schema_version() -> None:
    text = (GOLDEN / "v7.json").read_text(encoding="utf-8").strip()
    assert CommitManifest.from_json(text) == MANIFEST
    assert MANIFEST.to_json() == text, "the stored form changed: raise SCHEMA_VERSION"
    assert MANIFEST.sha256 == V7_SHA256, "every stored chain would break at its newest commit"


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(SCHEMA_VERSION + 1, "update the platform"), (2, "use the version of the platform that wrote")],
)
def test_a_manifest_of_another_schema_version_is_refused_with_the_remedy_spec_37(version: int, remedy: str) -> None:
    text = replace(MANIFEST, schema_version=version).to_json()
    with pytest.raises(
        OtherSchemaVersion, match=f"manifest of fused_tracks has schema version {version}, .* reads 3 to 7: {remedy}"
    ):
        CommitManifest.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "not json",
        "{}",
        '{"schema_version": "one"}',
        json.dumps({**json.loads(MANIFEST.to_json()), "surprise": 1}),
        json.dumps({k: v for k, v in json.loads(MANIFEST.to_json()).items() if k != "nonce"}),
        json.dumps({**json.loads(MANIFEST.to_json()), "windows": [{"table": "x"}]}),
        json.dumps({**json.loads(MANIFEST.to_json()), "segments": None}),
    ],
)
def test_text_that_is_no_manifest_is_an_invariant_error(text: str) -> None:
    with pytest.raises(InvariantError, match="not a manifest"):
        CommitManifest.from_json(text)


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_an_earlier_manifest_is_read_and_keeps_the_hash_of_its_text_P1_14(version: int) -> None:
    facts = json.loads(MANIFEST.to_json()) | {"schema_version": version}
    del facts["origin"]
    if version < 5:
        del facts["code_version"]
    if version < 4:
        facts["recovery"] = {"after_sequence": 3, "upto_sequence": 5, "reason": "torn"}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    manifest = CommitManifest.from_json(text)
    assert manifest.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (manifest.windows, manifest.segments, manifest.settings) == (
        MANIFEST.windows, MANIFEST.segments, MANIFEST.settings,
    )  # fmt: skip


def test_the_hash_covers_every_field() -> None:
    changed: dict[str, Any] = {
        "table": "x", "sequence": 1, "previous_sha256": "x", "as_of_ns": 1, "run_id": "x", "nonce": "x", "windows": (),
        "snapshots": (), "segments": (), "counts": {}, "watermarks": {},
        "settings": None, "fencing_token": 7, "code_version": "x", "origin": None,
        "schema_version": 0,
    }  # fmt: skip
    hashes = {replace(MANIFEST, **{name: value}).sha256 for name, value in changed.items()}
    assert len(hashes | {MANIFEST.sha256}) == len(changed) + 1
    assert set(changed) == set(CommitManifest.__dataclass_fields__)
