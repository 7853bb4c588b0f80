"""A unit is declared in one way, and the content of a table has one schema."""

from pathlib import Path

import pytest

import sda_platform
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.registry import TABLES

PACKAGE = Path(sda_platform.__file__).parent


def test_every_unit_is_declared_by_the_field_helper() -> None:
    by_hand = [path.name for path in PACKAGE.rglob("*.py") if 'metadata={"unit"' in path.read_text()]
    assert by_hand == ["quantities.py"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_content_is_every_declared_column_but_the_commits_own(table: Table) -> None:
    assert table.content_schema.names == [c.name for c in table.columns if c.name != COMMIT_SEQUENCE]
    assert all(
        table.content_schema.field(name) == table.arrow_schema.field(name) for name in table.content_schema.names
    )
