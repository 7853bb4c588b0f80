"""How long each store keeps what it holds: the one declaration of it, which every removal obeys.

`history.stores` lists the stores with these ages. Rows of tables are kept for ever: they are the archive.
"""

from dataclasses import dataclass

from sda_platform.lake.errors import Misconfigured


@dataclass(frozen=True)
class Retention:
    """Ages in hours or days, by the wall clock.

    A commit that is younger than ``replay_horizon_h`` can be replayed: the versions that it read still have their data
    files. VACUUM removes data files ``data_files_h`` after the last version that has them. Log files are removed after
    ``log_h``, but never those that a head, a chain or a consumer needs (`history.log_cleanup`).

    Consumed and quarantined segments, finished runs of Dagster, and receipts of subscribers go after their days. Of
    runs that succeeded only the newest ``succeeded_runs`` stay. The newest ``receipt_batches`` batches keep their
    receipts at any age. A process log above ``process_log_bytes`` is begun anew, and one such file before it is kept.
    The daily files of the newest ``daily_files_days`` days are kept.
    """

    replay_horizon_h: int = 7 * 24
    data_files_h: int = 8 * 24
    log_h: int = 8 * 24
    segments_days: int = 365
    runs_days: int = 30
    succeeded_runs: int = 5_000
    receipts_days: int = 30
    receipt_batches: int = 10_000
    process_log_bytes: int = 64 * 2**20
    daily_files_days: int = 30

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
