"""Classification of errors: rejected records, and failed runs.

Two tables. `RECORD_KINDS`: why a record is refused; the record becomes a dead letter and nothing else waits for it.
`disposition_of`: what an exception means for the run that it ended. `docs/how-to/dead-letters.md` is the first for
people, and a test holds the two together.
"""

import errno
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import grpc
from pyspark.errors import PySparkException

from sda_platform.failpoints import InjectedFault
from sda_platform.lake import object_store
from sda_platform.lake.admission import BROKEN_CONTRACT
from sda_platform.lake.errors import (
    CommitConflict,
    EngineUnavailable,
    InvalidRequest,
    InvariantError,
    Misconfigured,
    NotReplayable,
    SchemaMismatch,
    SegmentConflict,
    SegmentLost,
    StaleToken,
    TableIsRed,
    Unavailable,
)


class Disposition(StrEnum):
    """What repeating would bring."""

    TRANSIENT = "transient"
    """The same may succeed later: repeat, with pauses."""
    PERMANENT = "permanent"
    """The same fails again until input or code changes: set it aside, report it, do not repeat."""
    INVARIANT = "invariant"
    """The platform contradicts itself: stop loudly, a person must look before anything is repeated."""


@dataclass(frozen=True)
class RecordKind:
    """One kind of refused record, and what a person does about it."""

    disposition: Disposition
    meaning: str
    hypothesis: str
    validation: str
    fix: str
    reprocess: str


RECORD_KINDS: Final[Mapping[str, RecordKind]] = MappingProxyType(
    {
        "bad_length": RecordKind(
            Disposition.PERMANENT,
            "A frame, line or element-set line has another length than its format.",
            "The source changed its layout, or something cut or padded records on their way.",
            "Compare the payload's length with the layout.",
            "A changed layout: extend the decoder. A cut: repair the transport.",
            "After the decoder was extended; request cut records from the source.",
        ),
        "bad_json": RecordKind(
            Disposition.PERMANENT,
            "A telescope's record or an OMM object is not a JSON object.",
            "A defective export, or text of another format.",
            "Read the payload.",
            "The partner fixes the export, or the decoder learns the dialect.",
            "After the decoder was extended; else the partner sends the records again.",
        ),
        "bad_field": RecordKind(
            Disposition.PERMANENT,
            "A field has a value of the wrong type, or text that is not text.",
            "A changed type or unit, or a template with an empty place.",
            "The error names the field.",
            "Extend the decoder, or have the source return to the old form.",
            "After the decoder was extended.",
        ),
        "bad_checksum": RecordKind(
            Disposition.PERMANENT,
            "A line of a two-line element set does not add up to its checksum.",
            "A digit was altered or lost on the way.",
            "Compare with the same set from another publisher.",
            "Fetch the set again; inform the publisher.",
            "No. The set comes again with the next catalogue.",
        ),
        "bad_signature": RecordKind(
            Disposition.PERMANENT,
            "An edit of the catalogue is not signed by the site that it names.",
            "The site has no key here or signed nothing, or a forgery.",
            "Ask the site that the error names whether it made the edit.",
            "Add the site's key to `SDA_SITES`; a forgery: find who may write to the zone.",
            "After the key was added.",
        ),
        "frame_conflict": RecordKind(
            Disposition.PERMANENT,
            "A telemetry frame has the satellite and sequence of an earlier one, and other content.",
            "A station that damages frames, two satellites with one number, or a forgery.",
            "Compare both frames, and the stations that sent them.",
            "Repair the station, or give each satellite its own number.",
            "If the later frame is the true one.",
        ),
        "missing_field": RecordKind(
            Disposition.PERMANENT,
            "A field that the format requires is absent.",
            "A renamed field, or an export that leaves out what is empty.",
            "Is the field there under another name?",
            "Extend the decoder, or have the source fill the field.",
            "After the decoder was extended.",
        ),
        "out_of_range": RecordKind(
            Disposition.PERMANENT,
            "A value is physically impossible, or stamped later than it was received.",
            "A unit was changed (degrees for radians, km for m), a clock runs ahead, a sensor is defective.",
            "A constant factor points to a unit, a constant offset to a clock.",
            "The source fixes unit or clock.",
            "Only after an error of our decoder was fixed.",
        ),
        "torn_record": RecordKind(
            Disposition.PERMANENT,
            "The segment ends in the middle of a record, or a line of an element set has no second line.",
            "A writer was killed, or a file was cut during transfer.",
            "Is it the last record of its segment?",
            "None for the record; repair a writer that does so often.",
            "No. Request a new delivery from the source.",
        ),
        "unknown_format": RecordKind(
            Disposition.PERMANENT,
            "The format, or the version of a frame, is not one that this platform reads.",
            "The source has a newer version, or the zone is wrong.",
            "Look for the named version in the source's release notes.",
            "Update the platform; land a misplaced file in its own zone.",
            "After the update.",
        ),
        "bad_segment": RecordKind(
            Disposition.PERMANENT,
            "A segment is not what its metadata promises: truncated, altered, overwritten, miscounted, incomplete.",
            "A killed lander, a cut copy, a full disk, or bytes that decayed.",
            "The error names the difference to the bytes in quarantine/.",
            "Repair the lander or the transport; land the original file again.",
            "If the quarantined bytes are sound after all.",
        ),
        "name_conflict": RecordKind(
            Disposition.PERMANENT,
            "A segment has the name of an earlier one, which was consumed, and other bytes.",
            "A partner that reuses names, or corrected a file.",
            "Compare the bytes in quarantine/ with those in archive/.",
            "The partner gives each file its own name, as `sda land` does.",
            "If both files are needed; the name then ends with a hash.",
        ),
        "undecodable_segment": RecordKind(
            Disposition.PERMANENT,
            "The decoder fails at the segment, finds another number of records in it, or is killed at it repeatedly.",
            "Unexpected bytes, or more memory than the machine has.",
            "Decode a copy of the quarantined bytes by hand.",
            "Fix the decoder, or have the partner send smaller segments.",
            "After the fix; at once if no decoder fails at the segment.",
        ),
        "propagation_refused": RecordKind(
            Disposition.PERMANENT,
            "SGP4 refuses the element set: it decays, or its elements leave the theory's domain.",
            "An object that re-entered, or elements fitted badly during a manoeuvre.",
            "Has the object re-entered, or a newer set?",
            "None: the publisher's next set replaces it.",
            "No.",
        ),
        BROKEN_CONTRACT: RecordKind(
            Disposition.PERMANENT,
            "A row breaks the rules of its table: a number is not finite, out of its range, or a covariance is none.",
            "A defect of the platform's own computation or decoder.",
            "The text names table, commit, key and rule; the payload has the row.",
            "Correct the computation or the decoder.",
            "After the correction; a computed row is made again when its inputs change.",
        ),
        "late_observation": RecordKind(
            Disposition.TRANSIENT,
            "A sound observation came after its window had closed; it is stored, but is in no track.",
            "A source was cut off, its clock runs behind, or a collector deferred samples.",
            "A constant lag is a clock, a burst an outage. Compare radars with `records_deferred` of the collector.",
            "A slow source: raise `SDA_ALLOWED_LATENESS_S`. A clock: have it repaired. Deferred "
            "samples: find out why the lake fell behind.",
            "Yes: its closed windows are then computed again.",
        ),
    }
)

_OF_EXCEPTION: Final[Mapping[type[BaseException], Disposition]] = MappingProxyType(
    {
        CommitConflict: Disposition.TRANSIENT,
        Unavailable: Disposition.TRANSIENT,
        InvariantError: Disposition.INVARIANT,
        SchemaMismatch: Disposition.INVARIANT,
        SegmentConflict: Disposition.PERMANENT,
        Misconfigured: Disposition.PERMANENT,
        InvalidRequest: Disposition.PERMANENT,
        SegmentLost: Disposition.INVARIANT,
        NotReplayable: Disposition.PERMANENT,
        TableIsRed: Disposition.PERMANENT,
        StaleToken: Disposition.PERMANENT,
        ConnectionError: Disposition.TRANSIENT,
        TimeoutError: Disposition.TRANSIENT,
        MemoryError: Disposition.TRANSIENT,  # landing then takes smaller batches
        sqlite3.OperationalError: Disposition.TRANSIENT,  # locked, or its disk is full or away
        InjectedFault: Disposition.TRANSIENT,  # injected by tests in place of any of these
    }
)
# A disk that is full, read-only or failing, and a missing permission, are corrected without a change to input or code.
_OF_THE_MACHINE: Final = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.EAGAIN,
        errno.EBUSY,  # an object store that asks for fewer requests
        getattr(errno, "EREMOTEIO", errno.EIO),  # an object store that failed inside
        errno.EMFILE,
        errno.ENFILE,
        errno.ESTALE,
        errno.EACCES,
        errno.EPERM,
    }
)
# Conditions that Spark and Delta name: a lost session, and a change of the table during a write (another commit,
# maintenance, ALTER TABLE). The next attempt starts from the changed table.
_CONDITIONS: Final = (
    "INVALID_HANDLE",
    "NO_ACTIVE_SESSION",  # of a client whose engine was restarted
    "RESPONSE_ALREADY_RECEIVED",  # the same, in the middle of a statement
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)
# Failures of the engine's machine or of its workers have no condition of their own, only these words.
_OF_THE_ENGINE: Final = ("No space left on device", "Read-only file system", "Python worker exited unexpectedly")
# The same of Hadoop's client of an object store.
_OF_THE_STORE: Final = (
    "AWSClientIOException",
    "AWSServiceIOException",
    "AWSServiceThrottledException",
    "AWSStatus500Exception",
    "AWSNoResponseException",
    "AWSApiCallTimeoutException",
    "HttpChannelEOFException",
    "SdkClientException",
    "ConnectTimeout",
)
_OF_THE_CONNECTION: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)


def disposition_of(error: BaseException) -> Disposition:
    """Return what ``error`` means for a run. An unforeseen error is permanent: repeating a defect only hides it."""
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        return Disposition.TRANSIENT
    if object_store.is_failure(error) or (is_of_engine(error) and _may_pass(error)):
        return Disposition.TRANSIENT
    found = (_OF_EXCEPTION[kind] for kind in type(error).__mro__ if kind in _OF_EXCEPTION)
    return next(found, Disposition.PERMANENT)


def is_of_engine(error: BaseException) -> bool:
    """Return whether the engine or the connection to it failed: its session is then gone, and only a new run gets
    another.
    """
    return isinstance(error, EngineUnavailable | PySparkException | grpc.RpcError)


def _may_pass(error: BaseException) -> bool:
    code = getattr(error, "getGrpcStatusCode", getattr(error, "code", lambda: None))()
    text = str(error)
    words = (*_OF_THE_ENGINE, *_OF_THE_STORE)
    return code in _OF_THE_CONNECTION or any(each in text for each in words) or _has_condition(error, text)


def _has_condition(error: BaseException, text: str) -> bool:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition:
        return condition.startswith(_CONDITIONS)
    return any(f"[{name}" in text for name in _CONDITIONS)
