"""The Delta properties that every table has, and what depends on them."""

from collections.abc import Mapping

from deltalake import DeltaTable

from sda_platform.lake.retention import RETENTION
from sda_platform.lake.table import Table

# Only the maintenance removes log files: a commit manifest is the only memory of progress, and Delta's own clean-up has
# no information on heads or consumers. Files stay as long for Delta's checkpoints as for VACUUM. Rows are deleted by
# rewriting files: a data file is then all there is to sync and to verify.
REQUIRED = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.deletedFileRetentionDuration": f"interval {RETENTION.data_files_h} hours",
    "delta.enableDeletionVectors": "false",
}
# Spark takes longer for its checkpoint than for a commit, so `delta_checkpoints` writes them.
_OF_NEW_TABLES = {"delta.checkpointInterval": "1000"}
# A transaction id that expires lets a repeated commit through.
FORBIDDEN = ("delta.setTransactionRetentionDuration",)


def table_properties(table: Table) -> dict[str, str]:
    """Return what is set on a table when it is made.

    Bounds are kept of the columns by which files are passed over; those of all cost a quarter of an append.
    """
    return {**REQUIRED, **_OF_NEW_TABLES, "delta.dataSkippingStatsColumns": ",".join(table.bounded_columns)}


def differences(stored: Mapping[str, str | None]) -> list[str]:
    """Return how the properties of a stored table differ from what the platform depends on, in words."""
    wrong = [
        f"{name} is {stored.get(name)}, not {value}" for name, value in REQUIRED.items() if stored.get(name) != value
    ]
    return wrong + [f"{name} is set" for name in FORBIDDEN if stored.get(name) is not None]


def correction(uri: str, stored: Mapping[str, str | None]) -> str:
    """Return the SQL that sets the properties of a stored table right."""
    assignments = ", ".join(f"'{name}' = '{value}'" for name, value in REQUIRED.items())
    unset = [f"ALTER TABLE delta.`{uri}` UNSET TBLPROPERTIES ('{name}')" for name in FORBIDDEN if name in stored]
    return "; ".join([f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ({assignments})", *unset])


def correct(uri: str, stored: Mapping[str, str | None]) -> list[str]:
    """Set the required properties of the table at ``uri`` that differ; what was done, in words."""
    if not (wrong := differences(stored)):
        return []
    DeltaTable(uri).alter.set_table_properties(dict(REQUIRED), raise_if_not_exists=False)
    return [f"set its Delta properties: {'; '.join(wrong)}"]
