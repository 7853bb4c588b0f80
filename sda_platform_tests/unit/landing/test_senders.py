"""Each row states who brought its record: the source that we know, and the peer."""

import ast
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa

import sda_platform
from sda_platform.formats.segments import Origin, SegmentMeta, Sender, describe_segment
from sda_platform.ingest.tables import TELEMETRY_FRAMES
from sda_platform.landing.decoding import decode_batch, one_by_one
from sda_platform.landing.segments import DUPLICATE, LoadedSegment
from sda_platform.landing.zone import LandingZone

WAYS_IN = ("describe_segment", "seal_at", "Lander")
# They describe bytes to decode them, and seal nothing; the simulation's file is sealed by who lands it.
NOT_SEALED = {"cli/analysis/whatif.py", "runtime/submitted_ephemerides.py", "simulation/scenarios.py"}
# Its segment has several senders, which it adds.
SEVERAL = {"dead_letters/reprocessing.py", "runtime/catalogue_source.py"}


def lines(data: bytes, meta: SegmentMeta) -> pa.Table:
    """A decoder of one row a line."""
    del meta
    count = data.count(b"\n")
    return pa.table(
        {
            "record_number": pa.array(range(count), pa.int64()),
            "error_kind": pa.nulls(count, pa.string()),
            "error": pa.nulls(count, pa.string()),
        }
    )


def segment(name: str, *origins: Origin, defect: str | None = None) -> LoadedSegment:
    count = sum(origin.records for origin in origins) or 2
    data = f"{name}\n".encode() * count
    meta = describe_segment(
        data, feed="metrics", segment_format="metrics-jsonl", sealed_time_ns=1, sealed_wall_time_ns=1
    )
    meta = replace(meta, origins=origins or None)
    return LoadedSegment("metrics", name, name, data, meta, defect)


def senders(*segments: LoadedSegment) -> list[tuple[str, int, str | None, str | None]]:
    rows = decode_batch(TELEMETRY_FRAMES, segments, one_by_one(lines)).rows
    names = ("segment_name", "record_number", "source_name", "peer")
    return [tuple(row[name] for name in names) for row in rows.to_pylist()]


def test_each_record_has_the_sender_of_its_run() -> None:
    chance = Random(1)
    segments, expected = [], []
    for number in range(40):
        name, runs = f"s{number}", []
        for _ in range(chance.randrange(5)):
            run = Origin(chance.randrange(4), chance.choice("abc"), chance.choice([None, "192.0.2.1:7", "192.0.2.2:7"]))
            runs.append(run)
        of_records = [(run.source, run.peer) for run in runs for _ in range(run.records)]
        segments.append(segment(name, *runs) if of_records else segment(name))
        expected += [(name, n, *sender) for n, sender in enumerate(of_records or [(None, None)] * 2)]
    assert senders(*segments) == expected


def test_a_segment_as_a_whole_has_the_sender_that_all_its_records_share() -> None:
    alone = segment("alone", Origin(2, "a", "192.0.2.1"), Origin(1, "a", "192.0.2.2"), defect="alone: truncated")
    mixed = segment("mixed", Origin(2, "a", "192.0.2.1"), Origin(1, "b", "192.0.2.1"), defect="mixed: truncated")
    unknown = replace(segment("unknown", defect="unknown: no metadata"), meta=None)
    assert senders(alone, mixed, unknown) == [
        ("alone", -1, "a", None), ("mixed", -1, None, "192.0.2.1"), ("unknown", -1, None, None),
    ]  # fmt: skip


def test_equal_bytes_of_two_sources_are_one_record_of_the_first(tmp_path: Path) -> None:
    zone, data = LandingZone(str(tmp_path), "metrics"), b"{}\n"
    assert zone.seal_at(1, "a.metrics", data, "metrics-jsonl", sender=Sender("first"))
    assert not zone.seal_at(2, "a.metrics", data, "metrics-jsonl", sender=Sender("second"))
    (loaded,) = map(zone.read, zone.pending())
    again = replace(loaded, name="b.metrics", defect=DUPLICATE)
    assert senders(loaded, again) == [("a.metrics", 0, "first", None)]


def test_each_way_in_states_the_sender() -> None:
    root, silent = Path(sda_platform.__file__).parent, []
    assert [name for name in NOT_SEALED | SEVERAL if not (root / name).exists()] == [], "an exception for a file"
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in WAYS_IN and where not in NOT_SEALED | SEVERAL and "sender" not in {k.arg for k in call.keywords}:
                silent.append(f"{where}:{call.lineno}: {name}")
    assert silent == []
