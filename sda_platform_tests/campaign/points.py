"""The crash points of the requirements (`exactly-once`, section 13) and how this platform is hit at each.

Where a point has no case in T2 the reason stands here: the state cannot exist in this design, or a faster tier owns it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class CrashPoint:
    """One row of the crash matrix; ``elsewhere`` gives the reason T2 has no case of it, empty where it has."""

    id: str
    state: str
    elsewhere: str = ""


_NO_MANIFEST = "a plan is not stored, only its commit is; T0 and T1 cut the other durable writes at this step"

CRASH_POINTS = (
    CrashPoint("CP-01", "before the zones are listed"),
    CrashPoint("CP-02", "listed, nothing read"),
    CrashPoint("CP-03", "between two segments that are read and hashed"),
    CrashPoint("CP-04", "a durable file's temporary half written", _NO_MANIFEST),
    CrashPoint("CP-05", "its temporary synced, not renamed", _NO_MANIFEST),
    CrashPoint("CP-06", "renamed, its directory not synced", _NO_MANIFEST),
    CrashPoint("CP-07", "planned, nothing read"),
    CrashPoint("CP-08", "in the middle of reading and transforming"),
    CrashPoint("CP-09", "one data file half written"),
    CrashPoint("CP-10", "all data files written, no commit"),
    CrashPoint("CP-11", "the commit's temporary written, not renamed"),
    CrashPoint("CP-12", "committed, and the writer does not know"),
    CrashPoint("CP-13", "committed, Delta's checksum file missing"),
    CrashPoint("CP-14", "Delta's own checkpoint torn"),
    CrashPoint("CP-15", "Delta's checkpoint whole, the pointer to it stale"),
    CrashPoint("CP-16", "records committed, their dead letters not"),
    CrashPoint("CP-17", "data committed, what is derived of it not"),
    CrashPoint("CP-18", "committed, segments not acknowledged"),
    CrashPoint("CP-19", "in the middle of acknowledging one segment"),
    CrashPoint("CP-20", "acknowledged, Dagster not told"),
    CrashPoint("CP-21", "Dagster told, the run not finished"),
    CrashPoint("CP-22", "a tick evaluated, its cursor not saved"),
    CrashPoint("CP-23", "a run created, not submitted"),
    CrashPoint("CP-24", "a run submitted, the daemon dead"),
    CrashPoint("CP-25", "a run's worker dead before its first event"),
    CrashPoint("CP-26", "the code server dead in the middle of a tick"),
    CrashPoint("CP-27", "a worker stopped until another has done its work, then continued"),
    CrashPoint("CP-28", "fusion: planned, nothing read"),
    CrashPoint("CP-29", "fusion: before and after its commit"),
    CrashPoint("CP-30", "fusion: its input compacted between crash and replay"),
    CrashPoint("CP-31", "screening: in the middle of it"),
    CrashPoint("CP-32", "screening: done, not committed"),
    CrashPoint("CP-33", "screening: committed, the writer does not know"),
    CrashPoint("CP-34", "alerts in the outbox, none sent"),
    CrashPoint("CP-35", "alerts sent, the answer lost"),
    CrashPoint("CP-36", "answer received, the ledger not committed"),
    CrashPoint("CP-37", "some of a group of alerts sent"),
    CrashPoint("CP-38", "in the middle of OPTIMIZE"),
    CrashPoint("CP-39", "in the middle of VACUUM"),
    CrashPoint("CP-40", "in the middle of a change of schema"),
    CrashPoint("CP-R1", "recovery: verifying the log"),
    CrashPoint("CP-R2", "recovery: setting a lost commit aside"),
    CrashPoint("CP-R3", "recovery: putting the lost input back"),
    CrashPoint(
        "CP-R4", "recovery: reconciling the subscriber", "T1 kills deliveries there, to every kind of subscriber"
    ),
)
