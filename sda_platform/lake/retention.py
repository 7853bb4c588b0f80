"""How long each store keeps what it holds: the one declaration of it, which every removal obeys.

`history.stores` lists the stores with these ages. Rows of tables are kept for ever: they are the archive.
"""

import math
from dataclasses import dataclass, replace

from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.log import NEWEST_COMMITS
from sda_platform.retention_settings import RetentionSettings


@dataclass(frozen=True)
class Retention:
    """Ages in hours or days, by the wall clock.

    A commit that is younger than ``replay_horizon_h`` can be replayed: the versions that it read still have their data
    files. VACUUM removes data files ``data_files_h`` after the last version that has them. Log files are removed after
    ``log_h``, but never those of the ``newest_commits``, or that a head, a chain or a consumer needs
    (`history.log_cleanup`).

    All else is of one of three classes. ``operations_days``: finished runs of Dagster, receipts of subscribers, daily
    files. ``evidence_days``: consumed and quarantined segments. ``record_days``: the manifests of commits, and what the
    decisions on alerts had read of their objects. The last two are infinite under a legal hold.

    Of runs that succeeded only the newest ``succeeded_runs`` stay. The newest ``receipt_batches`` batches keep their
    receipts at any age. A process log above ``process_log_bytes`` is begun anew, and one such file before it is kept.
    """

    replay_horizon_h: int = 7 * 24
    data_files_h: int = 8 * 24
    log_h: int = 8 * 24
    newest_commits: int = NEWEST_COMMITS
    operations_days: int = 30
    evidence_days: float = 365.0
    record_days: float = 7 * 365.0
    succeeded_runs: int = 5_000
    receipt_batches: int = 10_000
    process_log_bytes: int = 64 * 2**20

    @property
    def is_held(self) -> bool:
        """Whether a legal hold is on: neither evidence nor records nor tags are removed, whatever their age."""
        return math.isinf(self.evidence_days)

    def require_covers(self, longest_run_h: float) -> None:
        """Raise Misconfigured unless whatever a run or a replay has pinned outlives it."""
        if not self.replay_horizon_h + longest_run_h < self.data_files_h <= self.log_h:
            raise Misconfigured(
                f"data files are kept for {self.data_files_h} h and logs for {self.log_h} h: the first must be more "
                f"than the replay horizon ({self.replay_horizon_h} h) and the longest run ({longest_run_h:g} h) "
                "together, the second no less than the first (sda_platform/lake/retention.py; max_runtime_seconds in "
                "dagster.yaml)"
            )


RETENTION = Retention()


def retention_of(chosen: RetentionSettings) -> Retention:
    """Return the retention under these settings."""
    if chosen.legal_hold:
        evidence_days = record_days = math.inf
    else:
        evidence_days, record_days = chosen.evidence_days, chosen.record_days
    return replace(
        RETENTION, operations_days=chosen.operations_days, evidence_days=evidence_days, record_days=record_days
    )


def days_text(days: float) -> str:
    """Describe an age of this table for people."""
    return "for ever, by the legal hold" if math.isinf(days) else f"{days:g} days"
