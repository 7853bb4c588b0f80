"""The rows and commits that depend on a bad input: alerts by their rows, and every table by its commits.

Rows name their inputs: segments, observations, tracks, epochs of element sets, ephemerides, originators of messages. So
alerts are found by rows; two element sets of one object with one epoch are not distinguished. Commits name the windows
that they read. So the manifests show whatever may contain a trace of the input, also by way of estimates. The search
goes as far back as the logs.
"""

import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, SAME_EVENT_NS
from sda_platform.fusion.tables import TRACK_MEMORY_NS
from sda_platform.history.errors import UnknownMoment
from sda_platform.history.pinned_view import PinnedView
from sda_platform.history.version_vector import newest_vector
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

Kind = Literal["segment", "sensor", "element set"]
_ELEMENT_SET = re.compile(r"(\d+)@(.+)")
SHA256 = re.compile(r"[0-9a-f]{12,64}")
_FOLLOWED = {"raw_records", "observations", "element_sets", "ephemerides", "received_cdms"}
_EPOCH_TOLERANCE_NS = 1_000_000
"""An epoch is typed with milliseconds."""


class UnknownInput(UnknownMoment):
    """A text names no segment, sensor or element set of the lake."""


@dataclass(frozen=True)
class TableImpact:
    """The commits of a table that read the input, directly or through other tables: their sequences, ascending."""

    table: str
    sequences: Sequence[int]
    run_ids: Sequence[str]

    @property
    def replay_command(self) -> str:
        """The command that makes these commits again and compares them."""
        return f"sda lake replay {self.table} --from-sequence {self.sequences[0]} --to-sequence {self.sequences[-1]}"


@dataclass(frozen=True)
class Impact:
    """What rests on an input.

    ``rows``: by table how many rows name it, and ``conditions`` the SQL that selects them. ``alerts``: entries of the
    alerts (event_id, sequence, op, risk) that were decided on an assessment which rests on it; a retract withdraws.
    ``tables``: all commits that read it, however indirectly, inputs before consumers.
    """

    kind: Kind
    name: str
    rows: Mapping[str, int]
    conditions: Mapping[str, str]
    alerts: Sequence[dict[str, Any]]
    tables: Sequence[TableImpact]

    @property
    def is_followed(self) -> bool:
        """Whether alerts name such rows; of others, such as sizes of objects, only commits are known."""
        return not _FOLLOWED.isdisjoint(self.rows)


def impact_of(lake: Lake, tables: Mapping[str, Table], text: str) -> Impact:
    """Find what rests on the input ``text``: a segment (name or SHA-256), a sensor, or NORAD_ID@EPOCH.

    Raises UnknownInput.
    """
    view = PinnedView(lake, tables, newest_vector(lake, tables), "current")
    for kind, conditions in _meanings(view, tables, text):
        found = {name: each for name, where in conditions.items() if (each := _rows_by_commit(view, name, where))}
        if found:
            rows = {name: sum(each.values()) for name, each in found.items()}
            bad = {name: conditions[name] for name in found}
            alerts = _alerts(view, conditions, _assessments_read(lake))
            return Impact(kind, text, rows, bad, alerts, list(_commits(lake, tables, found)))
    raise UnknownInput(
        f"{text!r} is no input of this lake: write the name or SHA-256 of a segment, a sensor (radar-7), or an element "
        "set (25544@2026-05-01T06:00:00.000Z)"
    )


def _meanings(view: PinnedView, tables: Mapping[str, Table], text: str) -> Iterator[tuple[Kind, dict[str, str]]]:
    """Yield what ``text`` may name, the likeliest first: the kind, and by table the condition on the rows that
    are it.
    """
    if found := _ELEMENT_SET.fullmatch(text):
        try:
            epoch_ns = parse_iso_ns(found[2])
        except ValueError:
            raise UnknownInput(f"{found[2]!r} is no ISO 8601 epoch") from None
        where = f"norad_id = {found[1]} AND abs(epoch_time_ns - {epoch_ns}) < {_EPOCH_TOLERANCE_NS}"
        yield "element set", {"element_sets": where}
        return
    quoted = text.replace("'", "''")
    landed = [n for n in view.vector.snapshots if "segment_sha256" in tables[n].arrow_schema.names and tables[n].zones]
    by_segment = f"segment_name = '{quoted}'"
    if SHA256.fullmatch(text):
        by_segment = f"segment_sha256 LIKE '{text}%'"
    yield "segment", {name: by_segment for name in (*landed, "observations") if name in view.vector.snapshots}
    yield "sensor", dict.fromkeys(("raw_records", "observations"), f"source_id = '{quoted}'")


def _rows_by_commit(view: PinnedView, table: str, where: str) -> dict[int, int]:
    """Return how many rows that ``where`` selects each commit wrote, by its sequence."""
    found = view.rows(f"SELECT {COMMIT_SEQUENCE}, count(*) FROM {table} WHERE {where} GROUP BY ALL")
    return dict(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _alerts(
    view: PinnedView, conditions: Mapping[str, str], assessments_read: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Return the entries of alerts whose assessments rest on these rows, by the ids and epochs that rows name."""
    bad = f"""
        WITH bad_observations AS (SELECT * FROM observations WHERE {conditions.get("observations", "false")}),
        bad_sets AS (SELECT * FROM element_sets WHERE {conditions.get("element_sets", "false")}),
        bad_ephemerides AS (
            SELECT (norad_id, segment_name || ':' || record_number) FROM ephemerides
            WHERE {conditions.get("ephemerides", "false")}
        ),
        bad_messages AS (SELECT * FROM received_cdms WHERE {conditions.get("received_cdms", "false")}),
        bad_fits AS (
            SELECT DISTINCT norad_id, epoch_time_ns FROM (
                SELECT norad_id, epoch_time_ns, unnest(observation_ids) AS observation_id FROM fused_tracks
            ) JOIN bad_observations USING (observation_id)
            UNION
            SELECT f.norad_id, f.epoch_time_ns FROM fused_tracks f JOIN bad_sets s
            ON f.norad_id = s.norad_id AND f.elements_epoch_ns = s.epoch_time_ns
        ),
        bad_tracks AS (  -- a track is filtered over the windows of two hours
            SELECT DISTINCT t.fit_id FROM fused_tracks t JOIN bad_fits b ON t.norad_id = b.norad_id
            AND b.epoch_time_ns <= t.epoch_time_ns AND b.epoch_time_ns > t.epoch_time_ns - {TRACK_MEMORY_NS}
        ),
        bad_candidates AS (
            SELECT event_id FROM conjunction_candidates
            WHERE (norad_id_1, elements_epoch_1_ns) IN (SELECT (norad_id, epoch_time_ns) FROM bad_sets)
            OR (norad_id_2, elements_epoch_2_ns) IN (SELECT (norad_id, epoch_time_ns) FROM bad_sets)
        ),
        assessments AS (
            SELECT *, coalesce(
                track_id_1 IN (FROM bad_tracks) OR track_id_2 IN (FROM bad_tracks) OR event_id IN (FROM bad_candidates)
                OR (norad_id_1, ephemeris_id_1) IN (FROM bad_ephemerides)
                OR (norad_id_2, ephemeris_id_2) IN (FROM bad_ephemerides), false) AS rests
            FROM conjunction_assessments WHERE op = '{INSERT}'
        ),
        bad_statements AS (
            SELECT a.event_id, a.sequence FROM conjunction_alerts a JOIN bad_messages m ON a.stated_by = m.originator
            AND abs(a.tca_time_ns - m.tca_time_ns) < {SAME_EVENT_NS}
            AND list_sort([a.norad_id_1, a.norad_id_2]) = list_sort([m.norad_id_1, m.norad_id_2])
        )"""
    assessed = view.rows(f"""{bad} SELECT event_id, {COMMIT_SEQUENCE}, rests FROM assessments
        WHERE event_id IN (SELECT event_id FROM assessments WHERE rests) ORDER BY {COMMIT_SEQUENCE}, sequence""")
    entries = view.rows(f"""{bad} SELECT event_id, sequence, op, risk, norad_id_1, norad_id_2, as_of_ns,
        {COMMIT_SEQUENCE}, (event_id, sequence) IN (FROM bad_statements) AS rests FROM conjunction_alerts
        WHERE event_id IN (SELECT event_id FROM assessments WHERE rests UNION SELECT event_id FROM bad_statements)
        ORDER BY event_id, sequence, op""")
    return list(_resting(entries.to_pylist(), assessed.to_pylist(), assessments_read))


def _resting(
    entries: Sequence[dict[str, Any]], assessed: Sequence[Mapping[str, Any]], assessments_read: Mapping[int, int]
) -> Iterator[dict[str, Any]]:
    """Yield the entries of alerts that were decided on an assessment that rests on the input, or by a message that is
    it: inserts, and withdrawals, which no insert of their commit follows.

    ``assessments_read``: up to which commit of assessments each commit of alerts had read. Where that is not known any
    more, one such assessment of the event is enough.
    """
    commits, rests = defaultdict[str, list[int]](list), defaultdict[str, list[bool]](list)
    for row in assessed:
        commits[row["event_id"]].append(row[COMMIT_SEQUENCE])
        rests[row["event_id"]].append(row["rests"])
    inserted = {(row["event_id"], row[COMMIT_SEQUENCE]) for row in entries if row["op"] == INSERT}
    for row in entries:
        event_id, commit, is_stated = row["event_id"], row.pop(COMMIT_SEQUENCE), row.pop("rests")
        if (upto := assessments_read.get(commit)) is None:
            is_assessed = any(rests[event_id])
        else:
            known = bisect_right(commits[event_id], upto)
            is_assessed = known > 0 and rests[event_id][known - 1]
        if row["op"] == INSERT:
            is_resting = is_assessed or is_stated
        else:
            is_resting = is_assessed and (event_id, commit) not in inserted
        if is_resting:
            yield row


def _assessments_read(lake: Lake) -> dict[int, int]:
    """Return by commit of alerts up to which commit of assessments it had read, as far back as the log goes."""
    read, upto = dict[int, int](), None
    for commit in lake.log(CONJUNCTION_ALERTS).commits(None)[::-1]:
        window = commit.manifest.window(CONJUNCTION_ASSESSMENTS.name)
        upto = window.upto_sequence if window else upto
        if upto is not None:
            read[commit.sequence] = upto
    return read


def _commits(lake: Lake, tables: Mapping[str, Table], written: Mapping[str, Iterable[int]]) -> Iterator[TableImpact]:
    """Every commit whose windows or snapshots contain a commit that is in ``written`` or follows from one there.

    Feedback closes cycles, so the search ends when nothing is added.
    """
    logs = {name: lake.log(table).commits(None)[::-1] for name, table in tables.items()}
    reached = {name: sorted(written.get(name, ())) for name in tables}
    changed = True
    while changed:
        changed = False
        for name, commits in logs.items():
            for commit in commits:
                if not _within(reached[name], commit.sequence - 1, commit.sequence) and _reads(commit, reached):
                    insort(reached[name], commit.sequence)
                    changed = True
    for name, commits in logs.items():
        sequences = set(reached[name])
        if found := [commit for commit in commits if commit.sequence in sequences]:
            yield TableImpact(name, [c.sequence for c in found], sorted({c.manifest.run_id for c in found}))


def _reads(commit: Commit, reached: Mapping[str, Sequence[int]]) -> bool:
    windows = ((w.table, w.after_sequence, w.upto_sequence) for w in commit.manifest.windows)
    snapshots = ((s.table, 0, s.sequence) for s in commit.manifest.snapshots)
    return any(_within(reached.get(table, ()), after, upto) for table, after, upto in (*windows, *snapshots))


def _within(ascending: Sequence[int], after: int, upto: int) -> bool:
    """Return whether one of the sequences is in (after, upto]."""
    return bisect_right(ascending, after) < bisect_right(ascending, upto)
