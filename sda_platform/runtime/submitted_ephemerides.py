"""Submitted ephemerides: into their landing zone, and from the lake's tables what became of them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.ephemeris_decoding import decoder, parts_not_used, why_not_used
from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIDES_FEED
from sda_platform.clock import iso
from sda_platform.conjunction.alert_messages import assessment_message
from sda_platform.conjunction.currency import screened_span
from sda_platform.conjunction.state_choice import NEWER_WITHOUT_COVARIANCE, flags_in, why_state
from sda_platform.conjunction.stated_objects import stated_objects
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.formats.cdm_writing import encode_cdms
from sda_platform.formats.segments import Sender, describe_segment
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.landing.lander import in_name
from sda_platform.landing.record_rows import SegmentDecoder
from sda_platform.landing.zone import LandingZone
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.path_sets import sets_through
from sda_platform.recovery.verification import current_keys
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Refusal
from sda_platform.serving.submissions import ID_DIGITS, NOT_USED, RECEIVED, SCREENED, Submission

PREFIX: Final = "submitted-"
"""How the names of the segments begin."""
_ENDINGS: Final = {"oem-kvn": ".oem", "oem-xml": ".xml"}
_STATED: Final = (
    "segment_name", "record_number", "error_kind", "error", "norad_id", "object_name", "received_time_ns",
    "usable_from_ns", "usable_until_ns", "state_time_ns", "state", "covariance_time_ns", "covariance_source",
    COMMIT_SEQUENCE,
)  # fmt: skip
_OUT_OF_ANSWERS: Final = {"state_1", "state_2", "covariance_1", "covariance_2", "op"}
Row = Mapping[str, Any]


class SubmittedEphemerides:
    """See `serving.submissions.Submissions`.

    A file is known by the hash of its bytes, however it was landed. Its segments may begin with a line of their own, so
    that their bytes are others: their names have the first digits.
    """

    def __init__(self, lake: Lake, landing_uri: str) -> None:
        self._lake = lake
        self._zone = LandingZone(landing_uri, EPHEMERIDES_FEED)

    def refusals(self, data: bytes, segment_format: str, live: LiveCatalogue) -> list[Refusal]:
        rows = _decoded(data, segment_format, decoder(partial(_numbers, live))).to_pylist()
        if not rows:
            return [Refusal(0, "missing_field", "the body holds no orbit ephemeris message (OEM)")]
        refused = [
            Refusal(row["record_number"], row["error_kind"], row["error"]) if row["error_kind"] else _refusal(row, live)
            for row in rows
        ]
        return [each for each in refused if each is not None]

    def objects(self, data: bytes, segment_format: str, live: LiveCatalogue) -> list[int | None]:
        rows = _decoded(data, segment_format, decoder(partial(_numbers, live)))
        numbers: list[int | None] = rows["norad_id"].to_pylist()
        return numbers

    def take(self, data: bytes, segment_format: str, sender: Sender) -> tuple[str, bool]:
        submission_id = hashlib.sha256(data).hexdigest()[:ID_DIGITS]
        name = f"{PREFIX}{submission_id}{_ENDINGS[segment_format]}"
        now_ns = self._lake.clock.now_ns()
        return submission_id, self._zone.seal_at(now_ns, name, data, segment_format, sender=sender)

    def find(self, submission_id: str) -> Submission | None:
        # The zone first: a segment may be consumed at any moment.
        waiting = self._waiting(submission_id)
        rows = self._rows(submission_id)
        if not rows:
            if waiting is None:
                return None
            return Submission(RECEIVED, (), {"received_utc": iso(waiting)}, (), _nothing)
        numbers = [row["norad_id"] for row in rows]
        used = [row for row in rows if why_not_used(row, row["received_time_ns"]) is None]
        screening = self._screening(max(row[COMMIT_SEQUENCE] for row in rows))
        facts: dict[str, Any] = {
            "received_utc": iso(rows[0]["received_time_ns"]),
            "ephemerides": [self._stated(row) for row in rows],
            "screened_until_utc": None if screening is None else iso(screening),
        }
        if not used:
            return Submission(NOT_USED, numbers, {**facts, "screened_until_utc": None}, (), _nothing)
        if screening is None:
            return Submission(RECEIVED, numbers, facts, (), _nothing)
        found = sorted(self._conjunctions(used), key=lambda each: (each["tca_time_ns"], each["event_id"]))
        facts["ephemerides"] = [self._stated(row) | _use(row, found) for row in rows]
        told = [{name: value for name, value in each.items() if name not in _OUT_OF_ANSWERS} for each in found]
        return Submission(SCREENED, numbers, facts, told, partial(_messages, self._lake, found))

    def _waiting(self, submission_id: str) -> int | None:
        """When a pending segment with these bytes was sealed, mission time; None: there is none."""
        named = in_name(submission_id)
        for each in self._zone.pending():
            if each.meta and (each.meta.sha256.startswith(submission_id) or named in each.name):
                return each.meta.sealed_time_ns
        return None

    def _rows(self, submission_id: str) -> list[Row]:
        where = pc.starts_with(ds.field("segment_sha256"), submission_id)
        where |= pc.match_substring(ds.field("segment_name"), in_name(submission_id))
        rows: list[Row] = self._lake.log(EPHEMERIDES).rows(_STATED, where).to_pylist()
        return sorted(rows, key=lambda row: (row["segment_name"], row["record_number"]))

    def _screening(self, sequence: int) -> int | None:
        """Up to which time an ephemeris of this commit was screened and assessed; None: it was not yet."""
        candidates = _consuming(self._lake.log(CONJUNCTION_CANDIDATES), EPHEMERIDES, sequence)
        if candidates is None:
            return None
        assessments = self._lake.log(CONJUNCTION_ASSESSMENTS)
        if _consuming(assessments, CONJUNCTION_CANDIDATES, candidates.sequence) is None:
            return None
        span = screened_span(self._lake)
        return span[1] if span else None

    @staticmethod
    def _stated(row: Row) -> dict[str, Any]:
        reason = why_not_used(row, row["received_time_ns"])
        stated = {"norad_id": row["norad_id"], "object_name": row["object_name"]}
        if row["usable_from_ns"] is not None:
            stated |= {f"usable_{end}_utc": iso(row[f"usable_{end}_ns"]) for end in ("from", "until")}
        if row["covariance_source"]:
            stated["covariance"] = row["covariance_source"]
        if parts := parts_not_used(row):
            stated["parts_not_used"] = parts
        return stated if reason is None else {**stated, "state": NOT_USED, "reason": reason}

    def _conjunctions(self, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
        """Yield the current assessments of the objects within the spans, but those that use another ephemeris of them.

        One that states no covariance has those of an earlier one on the same path.
        """
        own = {f"{row['segment_name']}:{row['record_number']}" for row in rows}
        ids = [row["norad_id"] for row in rows]
        concerned = ds.field("norad_id_1").isin(ids) | ds.field("norad_id_2").isin(ids)
        names = [c.name for c in CONJUNCTION_ASSESSMENTS.columns if c.name not in {"event_id", "sequence", "op"}]
        log = self._lake.log(CONJUNCTION_ASSESSMENTS)
        sequences = log.rows(["event_id", "sequence"], concerned).group_by("event_id").aggregate([("sequence", "max")])
        last = dict(zip(*(sequences.column(n).to_pylist() for n in ("event_id", "sequence_max")), strict=True))
        for each in current_keys(log, names, where=concerned).to_pylist():
            flags = flags_in(each["risk_flags"])
            sides = [
                (
                    each[f"norad_id_{n}"],
                    None if f"{NEWER_WITHOUT_COVARIANCE}_{n}" in flags else each[f"ephemeris_id_{n}"],
                )
                for n in (1, 2)
            ]
            if any(
                number == row["norad_id"]
                and (used is None or used in own)
                and row["usable_from_ns"] <= each["tca_time_ns"] <= row["usable_until_ns"]
                for number, used in sides
                for row in rows
            ):
                yield {**each, "sequence": last[each["event_id"]]}


def _use(row: Row, found: Sequence[Row]) -> dict[str, Any]:
    """Count the conjunctions ``found`` that rest on an ephemeris, and say why others of its object do not."""
    sides = [(each, n) for each in found for n in (1, 2) if each[f"norad_id_{n}"] == row["norad_id"]]
    own = f"{row['segment_name']}:{row['record_number']}"
    others = [(each, n) for each, n in sides if each[f"ephemeris_id_{n}"] != own]
    reasons = sorted({why_state(each, n) for each, n in others} - {""})
    return {"conjunctions_using_it": len(sides) - len(others), **({"why_others_do_not": reasons} if reasons else {})}


def _numbers(live: LiveCatalogue, designator: str) -> list[int]:
    """Return the objects that the served catalogue has under exactly this designator."""
    with live.view() as view:
        return view.numbers_of(designator)


def _decoded(data: bytes, segment_format: str, decode: SegmentDecoder) -> pa.Table:
    """Return the rows of `ephemerides` that a file becomes."""
    described = describe_segment(
        data, feed=EPHEMERIDES_FEED, segment_format=segment_format, sealed_time_ns=0, sealed_wall_time_ns=0
    )
    return decode(data, described) if described.records else EPHEMERIDES.content_schema.empty_table()


def _refusal(row: Row, live: LiveCatalogue) -> Refusal | None:
    """Return why a sound ephemeris cannot be screened; None: it can."""
    end_ns, problem = row["usable_until_ns"], None
    if live.get(row["norad_id"]) is None:
        problem = f"OBJECT_ID is {row['norad_id']}, which the catalogue does not have"
    elif end_ns <= live.now_ns():
        problem = f"it ended at {iso(end_ns)}, before now"
    elif any(
        sets_through(each, each.usable_from_ns, each.usable_until_ns) is None for each in Ephemeris.pieces_of(row)
    ):
        problem = "a state of it is on no closed orbit that SGP4 can follow"
    return Refusal(row["record_number"], "out_of_range", problem) if problem else None


def _consuming(log: TableLog, table: Table, sequence: int) -> Commit | None:
    """Return the commit that consumed commit ``sequence`` of ``table``, or the oldest that the log holds beyond it."""
    found = None
    for commit in log.commits_from(log.version()) if log.version() >= 0 else ():
        window = commit.manifest.window(table.name)
        if window is None or window.upto_sequence < sequence:
            break
        found = commit
        if window.after_sequence < sequence:
            break
    return found


def _nothing(encoding: str) -> bytes:
    """Return the CDMs where there is no conjunction."""
    del encoding
    return b""


def _messages(lake: Lake, conjunctions: Sequence[Row], encoding: str) -> bytes:
    """Return the CDMs of assessments that have states."""
    stated = [row for row in conjunctions if row["state_1"]]
    objects = stated_objects(lake, stated)
    messages = [assessment_message(row, row["as_of_ns"], objects=objects) for row in stated]
    return encode_cdms(messages, encoding) if messages else b""
