"""Errors of the lake; `orchestration.dispositions` has the remedy for each."""


class LakeError(Exception):
    """Base of the lake's errors; its text is written for the person who reads the run's log."""


class CommitConflict(LakeError):
    """Another writer took this sequence number; nothing of ours landed. Plan again."""


class StaleToken(LakeError):
    """Another holder of the table's lease has committed since: this one must not write any more."""


class InvariantError(LakeError):
    """The table's log contradicts itself or the plan. A retry cannot help: a person must examine the table."""


class UnreadableManifest(InvariantError):
    """A commit of the platform holds a text that is no manifest: it was damaged after it was written."""


class TableLost(InvariantError):
    """A table has no log any more, although others consumed its rows or its landing zones gave it records."""


class OtherSchemaVersion(InvariantError):
    """A commit manifest has a schema version that this version of the platform does not read."""


class SchemaMismatch(LakeError):
    """The rows do not have the columns that the table declares."""


class BrokenContract(InvariantError):
    """Rows of a table that may not leave any out break its contract: nothing was committed."""


class Unavailable(LakeError):
    """Something outside the platform does not answer (an engine, a subscriber): it may later."""


class InvalidRequest(LakeError):
    """A user's request cannot be carried out; the text has the reason."""


class Misconfigured(LakeError):
    """A setting, or what it points to, cannot be worked with: a person must change it."""


class EngineUnavailable(Unavailable):
    """The Spark engine does not answer."""


class SegmentConflict(LakeError):
    """Other bytes wait in the landing zone under this name; neither are touched."""


class NameUsed(SegmentConflict):
    """Other bytes were consumed under this name; the new ones need another."""


class SegmentLost(LakeError):
    """A consumed segment is not in the archive any more, or not as it was consumed."""


class NotReplayable(LakeError):
    """A commit cannot be made again: what it read, or how it was planned, is not there any more."""


class VersionGone(NotReplayable):
    """A version of a table that was pinned cannot be read any more: VACUUM removed its files, or its log was cut."""


class TableIsRed(LakeError):
    """A table breaks its promises from some commit on: consumers stop there until that is repaired or acknowledged."""


class MissingLineage(InvariantError):
    """A commit would not name its run, code, trigger or operator."""
