"""The index keeps held sets apart from the histories of objects, and moves them when they are released."""

from pathlib import Path

import pyarrow as pa

from sda_platform.serving.index import IS_HELD, CatalogueIndex
from sda_platform.serving.rocksdb_engine import RocksDbEngine
from sda_platform_tests.unit.serving.catalogues import bound_to, row, table


def marked(rows: list[dict[str, object]], *held: bool) -> pa.Table:
    return table(rows).append_column(IS_HELD, [list(held)])


def test_a_held_set_has_no_part_in_the_history_until_it_is_released__44(tmp_path: Path) -> None:
    index = CatalogueIndex(RocksDbEngine(tmp_path))
    sets = [row(7, epoch_time_ns=n, record_number=n) for n in (1, 2, 3)]

    def history() -> list[int]:
        index.verify()
        return [each.epoch_time_ns for each in index.history(7)]

    index.load(bound_to(1), table(sets[1:2]), [marked(sets, False, False, True)])
    assert (history(), index.require(1).sets) == ([1, 2], 3)
    index.update(bound_to(2), table(sets[2:]), marked(sets[2:], False))
    assert (history(), index.require(2).sets) == ([1, 2, 3], 3)
    fourth = row(7, epoch_time_ns=4, record_number=4)
    index.update(bound_to(3), table([]), marked([sets[1], fourth], True, True))
    assert (history(), index.require(3).sets) == ([1, 3], 4)
    index.engine.close()
