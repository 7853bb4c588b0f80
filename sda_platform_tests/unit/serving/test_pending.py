"""Acknowledged sets by object, as segments come and go."""

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sda_platform.serving.pending import PendingSets
from sda_platform.serving.record import StoredElements
from sda_platform_tests.unit.serving.catalogues import row, table

segments = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=6), max_size=6)


def sha256(number: int) -> str:
    return hashlib.sha256(bytes([number])).hexdigest()


@given(segments, st.sets(st.integers(0, 5)))
def test_every_set_that_waits_is_found_and_no_other(found: list[list[int]], consumed: set[int]) -> None:
    pending = PendingSets()
    model: dict[int, list[tuple[str, int]]] = {}
    for number, ids in enumerate(found):
        rows: list[dict[str, Any]] = [
            row(each, segment_sha256=sha256(number), record_number=place) for place, each in enumerate(ids)
        ]
        pending.add(sha256(number), table(rows))
        pending.add(sha256(number), table(rows))
    before, unchanged = pending.waiting, pending.waiting.of(3)
    gone = {sha256(number) for number in consumed}

    def is_indexed(record: StoredElements) -> bool:
        return record.segment_sha256 in gone

    pending = pending.without(is_indexed)
    pending.add(sha256(77), table([row(3)]))
    assert before.of(3) == unchanged, "what waited at one moment does not change"
    pending = pending.without(lambda record: record.segment_sha256 == row(3)["segment_sha256"])
    for number, ids in enumerate(found):
        if number not in consumed:
            for place, each in enumerate(ids):
                model.setdefault(each, []).append((sha256(number), place))
    assert pending.waiting.objects() == sorted(model)
    for each in range(1, 7):
        waiting = [(record.segment_sha256, record.record_number) for record in pending.waiting.of(each)]
        assert sorted(waiting) == sorted(model.get(each, []))
    assert len(pending) == sum(map(len, model.values()))
    assert (pending.waiting.digest == before.digest) == (not consumed & set(range(len(found))))
