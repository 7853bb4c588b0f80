"""How long the lake keeps what a table no longer holds: one policy for data files, for logs and for replays."""

from dataclasses import dataclass

from sda_platform.lake.errors import Misconfigured


@dataclass(frozen=True)
class Retention:
    """Ages in hours, by the wall clock.

    A commit that is younger than ``replay_horizon_h`` can be replayed: the versions that it read still have their data
    files. VACUUM removes data files ``data_files_h`` after the last version that has them. Log files are removed after
    ``log_h``, but never those that a head, a chain or a consumer needs (`archive.log_cleanup`).
    """

    replay_horizon_h: int = 7 * 24
    data_files_h: int = 8 * 24
    log_h: int = 8 * 24

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
