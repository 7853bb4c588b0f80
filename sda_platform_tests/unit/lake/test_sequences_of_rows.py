"""The sequence that a commit gives its rows, before the engine has them."""

import pytest

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.lake.commit import stamped
from sda_platform.lake.log_commits import Head
from sda_platform.lake.planning import plan_segments
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform_tests.support.delta_tables import rows_of


@pytest.mark.parametrize("count", [0, 3])
def test_arrow_rows_get_the_sequence_of_their_commit_whatever_they_had(count: int) -> None:
    plan = plan_segments(DEAD_LETTERS, Head(version=6, sequence=6), [], now_ns=1, run_id="run")
    rows = rows_of(DEAD_LETTERS, [{COMMIT_SEQUENCE: 2, "record_number": n} for n in range(count)])

    written = stamped(plan, rows)

    assert written.drop_columns(COMMIT_SEQUENCE) == rows.drop_columns(COMMIT_SEQUENCE)
    assert written.column(COMMIT_SEQUENCE).to_pylist() == [7] * count
    assert stamped(plan, rows.drop_columns(COMMIT_SEQUENCE)) == written
