"""The manifest: how far a table has consumed its inputs, written as JSON into the table's own commits.

Because it travels in the commit that holds the rows, output and progress cannot disagree (design section 2.1).
Only values and their JSON form live here; reading it back from a log is `lake.log`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sda_platform.lake.errors import OtherSchemaVersion, UnreadableManifest

# The version that is written. A change of the stored form, or of the meaning of columns, raises it.
SCHEMA_VERSION = 7
# Version 4 left out the record of a recovery, 5 added the version of the code, 6 came with renamed columns, 7 added the
# origin of a run.
_OLDEST_READ = 3
SAME_COLUMNS_SINCE = 6
"""The schema version from which on derived tables have the columns of today."""
NO_RUN = "none"
"""The run id of a lake that is only read."""
_ONLY_IN_EARLIER = ("recovery",)
GENESIS = "genesis"
CHANGED_ROWS = "changed_rows"
"""Among the counts of a commit that overwrites its table: how many rows are new or replaced."""

# By the name of the resource that has them, the settings under which rows were made.
Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class TableWindow:
    """The commits ``(after_sequence, upto_sequence]`` of an upstream table, and the Delta versions that held them.

    ``upto_sha256`` is the hash of the upstream manifest at ``upto_sequence`` (`GENESIS` where that is 0). A commit that
    was lost and made again has another hash, so it is not mistaken for the one that was consumed.
    """

    table: str
    after_sequence: int
    upto_sequence: int
    after_version: int
    upto_version: int
    upto_sha256: str = GENESIS

    @property
    def is_empty(self) -> bool:
        """Whether the window selects no commit."""
        return self.upto_sequence <= self.after_sequence

    def __str__(self) -> str:
        if self.is_empty:
            return f"{self.table} –"
        first, last = self.after_version + 1, self.upto_version
        return f"{self.table} v{first}..v{last}" if first < last else f"{self.table} v{last}"


@dataclass(frozen=True)
class TableSnapshot:
    """A table read whole, as it stood at ``version``; it informs a commit but does not trigger one."""

    table: str
    version: int
    sequence: int


@dataclass(frozen=True)
class SegmentRef:
    """A sealed segment that a commit consumed: ``records`` rows, or one row that states its ``defect``.

    A second delivery, which is discarded, has a ``defect`` and no row.
    """

    zone: str
    name: str
    sha256: str
    bytes: int
    records: int
    defect: str | None = None

    @property
    def is_duplicate(self) -> bool:
        """Whether the commit discarded it as a second delivery."""
        return self.defect is not None and self.records == 0


@dataclass(frozen=True)
class CommitManifest:
    """What one commit consumed and under which identity it was made.

    ``origin``: the ``trigger`` that started the run (a sensor, a schedule or a person), and its ``operator``.
    """

    table: str
    sequence: int
    previous_sha256: str
    as_of_ns: int
    run_id: str
    nonce: str
    windows: tuple[TableWindow, ...] = ()
    snapshots: tuple[TableSnapshot, ...] = ()
    segments: tuple[SegmentRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    settings: Settings | None = None
    fencing_token: int | None = None
    code_version: str = ""
    origin: Mapping[str, str] | None = None
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        """Canonical JSON: equal manifests give equal text."""
        facts = asdict(self, dict_factory=_present)
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """Hash of the canonical JSON; the successor names it as ``previous_sha256``."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def missing_lineage(self) -> list[str]:
        """Return what of the lineage this manifest does not name: run, code, trigger or operator."""
        facts = {"run id": "" if self.run_id == NO_RUN else self.run_id, "code version": self.code_version}
        if self.schema_version >= SCHEMA_VERSION:
            facts |= {name: (self.origin or {}).get(name, "") for name in ("trigger", "operator")}
        return [name for name, value in facts.items() if not value]

    def window(self, table: str) -> TableWindow | None:
        """Return the window on ``table``, if the commit consumed it."""
        return next((w for w in self.windows if w.table == table), None)

    def inputs(self) -> Iterator[TableSnapshot]:
        """Yield what the commit had read of each table: the ends of its windows, and its snapshots."""
        for window in self.windows:
            yield TableSnapshot(window.table, window.upto_version, window.upto_sequence)
        yield from self.snapshots

    @classmethod
    def from_json(cls, text: str) -> "CommitManifest":
        """Read a manifest.

        Raises UnreadableManifest for text that is no manifest, OtherSchemaVersion for one of a schema version that is
        not read.
        """
        try:
            facts: dict[str, Any] = json.loads(text)
            version = int(facts["schema_version"])
            if not _OLDEST_READ <= version <= SCHEMA_VERSION:
                raise OtherSchemaVersion(_other_version(str(facts.get("table")), version))
            is_earlier = version < SCHEMA_VERSION
            for name in _ONLY_IN_EARLIER if is_earlier else ():
                facts.pop(name, None)
            for name, kind in (("windows", TableWindow), ("snapshots", TableSnapshot), ("segments", SegmentRef)):
                facts[name] = tuple(kind(**each) for each in facts[name])
            return EarlierManifest(**facts, text=text) if is_earlier else cls(**facts)
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableManifest(f"not a manifest: {error!r} in {text[:120]!r}") from error


@dataclass(frozen=True)
class EarlierManifest(CommitManifest):
    """A manifest of an earlier schema version: its hash is that of its own text, so the chain goes on."""

    text: str = ""

    def to_json(self) -> str:
        """Return the text as it was stored."""
        return self.text


def _present(facts: list[tuple[str, Any]]) -> dict[str, Any]:
    """Leave out what is None, except ``defect``."""
    return {name: value for name, value in facts if value is not None or name == "defect"}


def _other_version(table: str, version: int) -> str:
    remedy = (
        "update the platform before it writes this table"
        if version > SCHEMA_VERSION
        else "use the version of the platform that wrote the lake, or rebuild: "
        f"`sda lake verify --repair --rebuild {table}`"
    )
    return (
        f"a commit manifest of {table} has schema version {version}, this version of the platform reads {_OLDEST_READ} "
        f"to {SCHEMA_VERSION}: {remedy}"
    )
