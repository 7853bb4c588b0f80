"""Verifying an evidence bundle from itself alone: no lake, no home of the platform, no engine."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sda_platform.clock import iso
from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.conjunction.stated_precision import rounded
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.evidence.bundle import Bundle
from sda_platform.evidence.errors import EvidenceError
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.errors import UnreadableManifest
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.segments import segment_sha256
from sda_platform.orbits.risk.best_probability import MONTE_CARLO, best_probabilities
from sda_platform.orbits.risk.levels import risk_level
from sda_platform.recovery.verification import broken_chain

Row = Mapping[str, Any]
_TOLERANCE = 1e-6
"""Relative, of what is recomputed: other processors round in other ways."""
_SIGMAS = 5.0
_UNREADABLE = (
    ArithmeticError, AttributeError, EvidenceError, IndexError, KeyError, RecursionError, TypeError, UnreadableManifest,
    ValueError,
)  # fmt: skip


@dataclass
class Verified:
    """What was found: ``problems`` (none: the bundle is sound), the signer, and what was recomputed."""

    alert: str
    problems: list[str]
    fingerprint: str = ""
    is_trusted: bool = False
    facts: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """What it comes to, in one line."""
        if self.problems:
            return f"NOT VERIFIED: {len(self.problems)} problems"
        if not self.is_trusted:
            return (
                "only consistent in itself: anybody can make such a bundle with a key of their own. Give the signer's "
                "key or fingerprint, from another source than the bundle, as --key"
            )
        return "verified: signed by the trusted key, and nothing was changed since"


def verify(path: Path, trusted: str | None = None) -> Verified:
    """Verify the bundle at ``path``; ``trusted``: the fingerprint of the key that must have signed it.

    A bundle with damaged members is judged by these alone, and one that another key signed by its signature. Raises
    EvidenceError where it is no bundle, OSError.
    """
    with Bundle(path, trusted) as bundle:
        if bundle.is_read:
            bundle.check()
        is_trusted = bool(bundle.signer) and bundle.signer == trusted
        found = Verified(_named(bundle), bundle.problems, bundle.signer, is_trusted)
        if not found.problems:
            _Content(bundle, found).verify()
        return found


def _named(bundle: Bundle) -> str:
    if not bundle.is_read:
        return "its contents were not read"
    names = ("alert_id", "revision", "made_by", "made_time_ns")
    alert_id, revision, made_by, made_ns = (bundle.facts.get(name) for name in names)
    when = iso(made_ns) if isinstance(made_ns, int) and 0 < made_ns < 2**63 else "unknown time"
    return f"alert {alert_id} revision {revision}, bundle of {when} by {made_by}"


@dataclass
class _Content:
    """What the members say, judged against each other."""

    bundle: Bundle
    found: Verified
    runs: dict[str, list[Commit]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    decision: Row = field(default_factory=dict)

    def verify(self) -> None:
        self.decision = self.bundle.json("decision.json")
        judges: Sequence[Callable[[], Iterator[str]]] = (
            self._chains, self._rows, self._segments, self._decision, self._probability,
        )  # fmt: skip
        for judge in judges:
            try:
                self.found.problems.extend(judge())
            except _UNREADABLE as error:
                self.found.problems.append(f"{judge.__name__[1:]} cannot be judged: {error!r}")

    def _chains(self) -> Iterator[str]:
        """Each table's manifests name each other, and the upstream commits that they consumed."""
        for name in self.bundle.names("manifests"):
            table = name.removeprefix("manifests/").removesuffix(".jsonl")
            manifests = []
            for number, line in enumerate(self.bundle.text(name).decode().splitlines(), 1):
                manifest = CommitManifest.from_json(line)
                manifests.append(Commit(-1, 0, 0, manifest))
                if manifest.to_json() != line or manifest.table != table:
                    yield f"{name}, line {number}: no manifest of {table} as the platform writes it"
            self.runs[table] = manifests
            yield from (f"{name}: {problem}" for problem in broken_chain(manifests[::-1]))
        known = {(table, c.sequence): c.manifest_sha256 for table, run in self.runs.items() for c in run}
        links = 0
        for table, run in self.runs.items():
            for window in (window for commit in run for window in commit.manifest.windows):
                upstream = known.get((window.table, window.upto_sequence))
                links += upstream is not None
                if upstream not in (None, window.upto_sha256):
                    yield f"manifests/{table}.jsonl: consumed another commit {window.upto_sequence} of {window.table}"
        count = sum(map(len, self.runs.values()))
        self.found.facts.append(f"{count} manifests of {len(self.runs)} tables are chains, with {links} links between")

    def _rows(self) -> Iterator[str]:
        """Each row is of a commit whose manifest is here."""
        for name in self.bundle.names("rows"):
            table = name.removeprefix("rows/").removesuffix(".json")
            self.rows[table] = self.bundle.json(name)
            sequences = {commit.sequence for commit in self.runs.get(table, ())}
            gone = self.decision["gone_manifests"].get(table, [])
            unknown = sorted({row[COMMIT_SEQUENCE] for row in self.rows[table]} - sequences.union(gone))
            if unknown:
                yield f"{name}: rows of commits {unknown[:3]}, whose manifests are not here"
        for table, gone in self.decision["gone_manifests"].items():
            if gone:
                self.found.facts.append(f"{len(gone)} manifests of {table} were gone when the bundle was made")
        self.found.facts.append(
            f"{sum(map(len, self.rows.values()))} rows of {len(self.rows)} tables, each of one of these"
        )

    def _segments(self) -> Iterator[str]:
        """Each segment has the bytes that a manifest names, and each row from a segment has it here."""
        segments = self.bundle.json("segments.json")
        consumed = {
            (table, commit.sequence, ref.sha256): ref
            for table, run in self.runs.items()
            for commit in run
            for ref in commit.manifest.segments
        }
        absent = {each["sha256"] for each in segments if each["is_absent"]}
        listed = {each["sha256"] for each in segments}
        for each in segments:
            ref = consumed.get((each["table"], each["commit_sequence"], each["sha256"]))
            if ref is None or (ref.zone, ref.name, ref.bytes) != (each["zone"], each["name"], each["bytes"]):
                yield f"segments.json: no manifest here names {each['zone']}/{each['name']} so"
            elif not each["is_absent"]:
                data = self.bundle.text(f"segments/{ref.sha256}")
                if segment_sha256(ref.zone, ref.name, data, ref.defect) != ref.sha256:
                    yield f"segments/{ref.sha256}: other bytes than the platform consumed as {ref.zone}/{ref.name}"
        for name in self.bundle.names("segments"):
            if name.removeprefix("segments/") not in listed:
                yield f"{name}: segments.json does not name it"
        gone = self.decision["gone_segments"]
        for table, rows in self.rows.items():
            unnamed = {row["segment_sha256"] for row in rows if row.get("segment_sha256")} - listed.union(gone)
            if unnamed:
                yield f"rows/{table}.json: of segment {min(unnamed)[:12]}… nothing is here"
        self.found.facts.append(f"{len(listed - absent)} segments have the bytes that manifests name")
        if absent or gone:
            self.found.facts.append(f"{len(absent.union(gone))} segments had left the archive when the bundle was made")

    def _decision(self) -> Iterator[str]:
        """The revision is there, and is what its assessment gives."""
        decision, alert = self.decision, self._alert()
        if alert is None:
            yield f"decision.json: rows/{CONJUNCTION_ALERTS.name}.json has no such alert and revision"
            return
        if {name: self.bundle.facts[name] for name in ("alert_id", "revision")} != {
            name: decision[name] for name in ("alert_id", "revision")
        }:
            yield "decision.json: another alert or revision than the contents name"
        run = {commit.sequence: commit for commit in self.runs[CONJUNCTION_ALERTS.name]}
        commit = run[alert[COMMIT_SEQUENCE]]
        if decision["commit_sequence"] != commit.sequence:
            yield "decision.json: another commit than that of the revision"
        for read in commit.manifest.inputs():
            known = decision["versions"].get(read.table)
            if read.sequence and (known is None or known < read.version):
                yield f"decision.json: version {known} of {read.table}, but the decision read {read.version}"
        self.found.facts.append(
            f"decided {iso(commit.manifest.as_of_ns)} by code {commit.manifest.code_version or 'unknown'}, commit "
            f"{commit.sequence}: {alert['risk']}, {alert['object_name_1']} ({alert['norad_id_1']}) – "
            f"{alert['object_name_2']} ({alert['norad_id_2']}), TCA {iso(alert['tca_time_ns'])}"
        )

    def _probability(self) -> Iterator[str]:
        """The assessed probability follows from both states and covariances, and the alert states it."""
        decision, alert = self.decision, self._alert()
        if decision["assessment"] is None or alert is None:
            self.found.facts.append(
                "no assessment of our own: the alert rests on received messages, nothing to recompute"
            )
            return
        row = self._entry(CONJUNCTION_ASSESSMENTS.name, decision["assessment"])
        if row is None:
            yield f"decision.json: rows/{CONJUNCTION_ASSESSMENTS.name}.json has no such assessment"
            return
        place = f"rows/{CONJUNCTION_ASSESSMENTS.name}.json"
        best = best_probabilities(assessed_pass(row))
        probability, method = float(best.probability[0]), best.method[0]
        error = float(best.standard_error[0]) if method == MONTE_CARLO else 0.0
        again = {
            "collision_probability": (probability, _SIGMAS * error),
            "maximum_probability": (float(best.two_dimensional.maximum_probability[0]), 0.0),
            "mahalanobis_distance": (float(best.two_dimensional.mahalanobis_distance[0]), 0.0),
            "miss_distance_km": (float(np.linalg.norm(np.subtract(row["state_2"][:3], row["state_1"][:3]))), 0.0),
        }
        for name, (value, margin) in again.items():
            if not _same(value, row[name], margin):
                yield f"{place}: {name} is {row[name]}, its states and covariances give {value:.9g}"
        if row["probability_method"] not in (None, method):
            yield f"{place}: the method is {row['probability_method']}, its states and covariances give {method}"
        level = str(risk_level(best.probability_for_risk)[0])
        if level != row["risk"] and not error:
            yield f"{place}: the level is {row['risk']}, its states and covariances give {level}"
        for name, value in rounded({**row, "stated_probability": alert["stated_probability"]}).items():
            if name in alert and alert[name] != value:
                yield f"rows/{CONJUNCTION_ALERTS.name}.json: {name} is {alert[name]}, its assessment gives {value}"
        self.found.facts.append(
            f"probability of collision recomputed: {probability:.9e} ({method}), assessed "
            f"{row['collision_probability']:.9e}; miss distance {1000 * again['miss_distance_km'][0]:.3f} m"
        )

    def _alert(self) -> Row | None:
        return self._entry(CONJUNCTION_ALERTS.name, self.decision["revision"])

    def _entry(self, table: str, sequence: int) -> Row | None:
        """Return the entry of the alert's event that ``sequence`` numbers."""
        wanted = (self.decision["alert_id"], sequence, INSERT)
        rows = self.rows.get(table, ())
        return next((row for row in rows if (row["event_id"], row["sequence"], row["op"]) == wanted), None)


def _same(value: float, stored: float | None, margin: float) -> bool:
    if stored is None or not math.isfinite(value):
        return stored is None and not math.isfinite(value)
    return abs(value - stored) <= max(_TOLERANCE * abs(stored), margin)
