"""Check evaluations in the order in which they were made, for runs of one asset that overlap.

Dagster takes the evaluation that was planned last for the newest one. Of two runs that overlap, the first to be queued
may be the last to write the table and to evaluate its checks. The UI would then show the table as not evaluated, until
another run comes.
"""

from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from sqlalchemy import and_, func, select


class OrderedEvaluations(SqlEventLogStorage):
    """Lets an evaluation replace its plan with a record of its own where another run planned the same check later."""

    def _update_asset_check_evaluation(self, event: EventLogEntry, event_id: int | None) -> None:
        evaluation = event.get_dagster_event().asset_check_evaluation_data
        records = AssetCheckExecutionsTable.c
        of_the_check = and_(
            records.asset_key == evaluation.asset_key.to_string(), records.check_name == evaluation.check_name
        )
        newest = select(func.max(records.id)).where(of_the_check).scalar_subquery()
        with self.index_connection() as connection:
            connection.execute(
                AssetCheckExecutionsTable.delete().where(
                    of_the_check, records.run_id == event.run_id, records.id < newest
                )
            )
        # Without a plan, Dagster inserts a record.
        super()._update_asset_check_evaluation(event, event_id)
