"""Whether tables fit together: each consumer's newest window ends at a commit that its source still has.

A table that was restored from an older backup alone is sound by itself, but its consumers have read commits that it
lost. Every plan of theirs would be refused, so the verification names the tables together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltalake.exceptions import DeltaError

from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.lost_tables import made_from
from sda_platform.lake.table import Table
from sda_platform.recovery.examination import Damage, Examination


def unfitting(lake: Lake, tables: Sequence[Table], sound: dict[str, Examination]) -> dict[str, Examination]:
    """Return the examinations of those of the ``sound`` tables that have consumed what a sound source does not have."""
    found = {}
    for table in (table for table in tables if table.name in sound and not sound[table.name].is_absent):
        damage = tuple(_unfit_windows(lake, tables, table, sound))
        if damage:
            found[table.name] = replace(sound[table.name], damage=damage)
    return found


def _unfit_windows(
    lake: Lake, tables: Sequence[Table], table: Table, sound: dict[str, Examination]
) -> Iterator[Damage]:
    by_name = {each.name: each for each in tables}
    commit = lake.log(table).head().commit
    for window in commit.manifest.windows if commit else ():
        source = sound.get(window.table)
        if source is None or source.is_absent or window.table not in by_name:
            continue
        try:
            lake.log(by_name[window.table]).confirm(window)
        except (InvariantError, DeltaError) as error:
            yield Damage(
                f"{table.name} does not fit {window.table}: {error}", remedy=_remedy(tables, table, window.table)
            )


def _remedy(tables: Sequence[Table], table: Table, source: str) -> str:
    rebuilt = ", ".join(each.name for each in made_from(tables, table))
    return (
        f"Restore {source} and {table.name} together, from one backup. Or run `sda lake verify --repair --rebuild "
        f"{table.name}`: it sets {rebuilt} aside, and the platform makes them anew from {source}"
    )
