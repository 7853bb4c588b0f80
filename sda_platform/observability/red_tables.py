"""Red tables for people: which there are and why, `sda lake accept`, and the review that every start makes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sda_platform.audit_log import user
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.lake.verdicts import Acknowledgement, CommitFinding, TableVerdict
from sda_platform.registry import TABLES, tables_named


@dataclass(frozen=True)
class RedTable:
    """Commits of a table that break its promises. ``since_utc`` is mission time; ``acknowledged`` names the person."""

    table: str
    sequence: int
    upto_sequence: int
    since_utc: str
    problems: tuple[str, ...]
    acknowledged: str | None

    def __str__(self) -> str:
        last = f" to {self.upto_sequence}" if self.upto_sequence > self.sequence else ""
        return f"{self.table} sequence {self.sequence}{last} since {self.since_utc}: {'; '.join(self.problems)}"

    @property
    def remedy(self) -> str:
        """Describe what a person does about the red table, or has done."""
        return self.acknowledged or f"repair its rows and run its checks, or `sda lake accept {self.table}`"


def red_tables(lake: Lake, tables: Sequence[Table] = TABLES) -> tuple[RedTable, ...]:
    """Every finding about ``tables`` that was not repaired, acknowledged or not."""
    verdicts = (lake.verdicts.read(lake.log(table)) for table in tables)
    return tuple(_red_table(verdict, finding) for verdict in verdicts for finding in verdict.findings)


def acknowledge(lake: Lake, name: str, reason: str) -> tuple[RedTable, ...]:
    """Acknowledge what is red of the table ``name``, or of ``all``, in the user's name; returns what that was.

    Consumers then read on. What is found later, or grows worse, is red again. Raises UnknownTable.
    """
    accepted: list[RedTable] = []
    for table in tables_named(name):
        verdict = lake.verdicts.read(lake.log(table))
        at_utc = datetime.now(UTC).isoformat(timespec="seconds")
        decisions = [
            Acknowledgement(found.fingerprint, found.sequence, user(), at_utc, reason) for found in verdict.red
        ]
        if decisions:
            lake.verdicts.acknowledge(table.name, decisions)
            now = lake.verdicts.read(lake.log(table))
            accepted += [_red_table(now, found) for found in verdict.red]
    return tuple(accepted)


def acknowledgement_lines(name: str, accepted: Sequence[RedTable]) -> Iterator[str]:
    """Write the report of `sda lake accept`."""
    if not accepted:
        yield f"nothing of {name} is red" if name != "all" else "no table is red"
    yield from (f"{each}\n  {each.remedy}" for each in accepted)


def review_unverified(lake: Lake) -> Iterator[str]:
    """Verify tables that are red or have commits without a verdict; yield a line with the problems of each.

    A run that was killed between a commit and its checks leaves such commits, and so does a lost verdict.
    """
    unverified = [table for table in TABLES if _needs_review(lake, table)]
    if not unverified:
        return
    import sda_platform.definitions  # noqa: F401  # the packages declare there what their tables promise
    from sda_platform.orchestration.table_checks import review_declared  # Dagster is loaded only where it is needed

    for table in unverified:
        try:
            review_declared(lake, table)
        except (LakeError, OSError) as error:
            yield f"{table.name} could not be verified: {error}"
        else:
            yield from (f"red: {each}; {each.remedy}" for each in red_tables(lake, [table]))


def _needs_review(lake: Lake, table: Table) -> bool:
    try:
        verdict = lake.verdicts.read(lake.log(table))
        return bool(verdict.findings) or verdict.verified.sequence < lake.log(table).head().sequence
    except LakeError:  # the examination of the log has named what is damaged
        return False


def _red_table(verdict: TableVerdict, finding: CommitFinding) -> RedTable:
    decision = verdict.acknowledged.get(finding.fingerprint)
    return RedTable(
        verdict.table,
        finding.sequence,
        finding.last.sequence,
        finding.since_utc,
        tuple(finding.lines),
        str(decision) if decision else None,
    )
