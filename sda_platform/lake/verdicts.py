"""The verification result of each table, stored in the lake next to the tables; every plan reads it.

`<lake>/_verdicts/<table>.json` is derived from the table: the newest verified commit, and the findings. If it is lost
or damaged, no commit counts as verified, and `recovery.review` derives it again. It is written whole and synced. Two
writers need no lock: an older result only causes the newest commits to be verified again, and until then no plan reads
them. `<lake>/_verdicts/<table>.acknowledged.json` has the acknowledgements; only people write it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from sda_platform.lake import durable
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.storage import contents_of, location

SCHEMA_VERSION = 1
# Delta's VACUUM passes over names that begin with an underscore, and no table is named so.
DIRECTORY = "_verdicts"


@dataclass(frozen=True)
class Position:
    """A commit of a table. Sequence 0, version -1: before the first."""

    sequence: int = 0
    version: int = -1
    sha256: str = ""

    @classmethod
    def of(cls, commit: Commit) -> "Position":
        """Return the position of ``commit``."""
        return cls(commit.sequence, commit.version, commit.manifest_sha256)


@dataclass(frozen=True)
class CommitFinding:
    """What is wrong with the commits after ``before`` up to ``last``: by promise, its problems.

    ``sequence`` is the first of them. ``since_utc`` is the mission time at which it was found.
    """

    table: str
    sequence: int
    before: Position
    last: Position
    problems: Mapping[str, Sequence[str]]
    since_utc: str

    @cached_property
    def fingerprint(self) -> str:
        """Identity of what was found: an acknowledgement holds for exactly these commits and problems."""
        facts = [self.table, self.sequence, asdict(self.last), {k: list(v) for k, v in self.problems.items()}]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    def lines(self) -> list[str]:
        """Its problems, each with the promise that it breaks."""
        return [f"{promise}: {problem}" for promise, found in self.problems.items() for problem in found]

    def __str__(self) -> str:
        return f"{self.table} sequence {self.sequence}: {'; '.join(self.lines)}"


@dataclass(frozen=True)
class Acknowledgement:
    """A person's decision that consumers may read on in spite of a finding. ``at_utc`` is wall time."""

    fingerprint: str
    sequence: int
    by: str
    at_utc: str
    reason: str

    def __str__(self) -> str:
        return f"acknowledged by {self.by} at {self.at_utc}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class TableVerdict:
    """Up to which commit a table was verified, what was found, oldest first, and what of it was acknowledged."""

    table: str
    verified: Position = Position()
    findings: tuple[CommitFinding, ...] = ()
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)

    @property
    def red(self) -> list[CommitFinding]:
        """The findings that no person acknowledged."""
        return [finding for finding in self.findings if finding.fingerprint not in self.acknowledged]

    @property
    def readable(self) -> Position:
        """The commit up to which consumers may read: before the first red one, else the last that was verified."""
        return min([self.verified, *(finding.before for finding in self.red)], key=lambda p: p.sequence)

    @property
    def needed_versions(self) -> list[int]:
        """The versions that the log must keep: up to where the table may be read, and those before each red finding,
        from which it is verified again."""
        positions = [self.readable, *(finding.before for finding in self.red)] if self.verified.sequence else []
        return [max(position.version, 0) for position in positions]


class Verdicts:
    """The verdicts of the lake at ``uri``."""

    def __init__(self, uri: str) -> None:
        self._directory = location(uri) / DIRECTORY

    def read(self, log: TableLog, newest_version: int | None = None) -> TableVerdict:
        """Return the verdict on the table of ``log``; of nothing, where there is none, or one on another table of that
        name.

        What cannot be read counts as absent: nothing is verified then. ``newest_version``: the log's, where the caller
        has just looked for it.
        """
        name = log.table.name
        facts, decisions = self._contents(f"{name}.json", f"{name}.acknowledged.json")
        acknowledged = _acknowledged(decisions)
        try:
            verified = Position(**facts["verified"])
            findings = tuple(
                CommitFinding(**{**each, "before": Position(**each["before"]), "last": Position(**each["last"])})
                for each in facts["findings"]
            )
        except (KeyError, TypeError):
            return TableVerdict(name, acknowledged=acknowledged)
        if not _is_of(log, log.version() if newest_version is None else newest_version, verified):
            return TableVerdict(name, acknowledged=acknowledged)
        return TableVerdict(name, verified, findings, acknowledged)

    def shows_lost(self, log: TableLog) -> str | None:
        """Return how the verdict shows that the table of ``log``, which has no log, existed before; None if it does
        not.
        """
        try:
            (facts,) = self._contents(f"{log.table.name}.json")
            sequence = int(facts["verified"]["sequence"])
        except (KeyError, TypeError, ValueError):
            return None
        return (
            f"{log.table.name} is missing, but {sequence} commits of it were verified: it was lost"
            if sequence
            else None
        )

    def discard(self, table: str) -> None:
        """Remove the verdict on ``table``, which is set aside; it is derived again. Acknowledgements stay."""
        path = self._directory / f"{table}.json"
        if path.exists():
            path.unlink()
            durable.sync([self._directory])

    def write(self, verdict: TableVerdict) -> None:
        """Store ``verdict``, without its acknowledgements; it survives a power loss."""
        facts = {"verified": asdict(verdict.verified), "findings": [asdict(each) for each in verdict.findings]}
        self._store(f"{verdict.table}.json", facts)

    def acknowledgements(self, table: str) -> dict[str, Acknowledgement]:
        """Return what people acknowledged of ``table``, by the finding's fingerprint."""
        (decisions,) = self._contents(f"{table}.acknowledged.json")
        return _acknowledged(decisions)

    def acknowledge(self, table: str, acknowledgements: Sequence[Acknowledgement]) -> None:
        """Store these acknowledgements with those that there are."""
        known = {**self.acknowledgements(table), **{each.fingerprint: each for each in acknowledgements}}
        facts = {"acknowledgements": [asdict(each) for each in known.values()]}
        self._store(f"{table}.acknowledged.json", facts)

    def _contents(self, *names: str) -> list[Any]:
        return [_parsed(each) for each in contents_of([self._directory / name for name in names])]

    def _store(self, name: str, facts: Mapping[str, Any]) -> None:
        text = json.dumps({"schema_version": SCHEMA_VERSION, **facts}, indent=1)
        durable.write(self._directory / name, (text + "\n").encode())


def _parsed(text: bytes | None) -> Any:
    try:
        content = json.loads(text or b"")
    except ValueError:
        return {}
    return content if isinstance(content, dict) and content.get("schema_version") == SCHEMA_VERSION else {}


def _acknowledged(decisions: Any) -> dict[str, Acknowledgement]:
    try:
        given = [Acknowledgement(**each) for each in decisions["acknowledgements"]]
    except (KeyError, TypeError):
        return {}
    return {each.fingerprint: each for each in given}


def _is_of(log: TableLog, newest_version: int, position: Position) -> bool:
    """Return whether the log holds that commit; one whose file was cleaned away in the meantime is not contradicted."""
    if position.version > newest_version:
        return False
    commit = log.commit_at(position.version) if position.sequence else None
    return commit is None or commit.manifest_sha256 == position.sha256
