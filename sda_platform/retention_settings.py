"""How long the platform keeps what a later question needs, and its backups, as settings."""

from typing import Self

from pydantic import model_validator

from sda_platform.setting_fields import SettingsSection, setting


class RetentionSettings(SettingsSection):
    """How long what a later question needs is kept (`lake.retention`), and where backups are made."""

    evidence_days: float = setting(
        365.0,
        "Days for which consumed and quarantined segments are kept.",
        "EVIDENCE_DAYS",
        ge=30.0,
    )
    record_days: float = setting(
        2555.0,
        "Days for which manifests of commits are kept, and what decisions on alerts had read.",
        "RECORD_DAYS",
        ge=30.0,
    )
    operations_days: int = setting(
        30,
        "Days for which finished runs of Dagster, receipts of the subscriber and daily files are kept.",
        "OPERATIONS_DAYS",
        ge=1,
    )
    backup: str = setting(
        "", "Directory for a backup each night, best on another disk; empty: none is made.", "BACKUP", is_file=True
    )
    backups_kept: int = setting(14, "Number of nightly backups that are kept.", "BACKUPS_KEPT", ge=1)
    backup_max_age_s: float = setting(93_600.0, "Largest age of the newest backup, seconds.", "BACKUP_MAX_AGE_S")
    legal_hold: bool = setting(
        False, "Whether segments, manifests, what decisions had read, and tags stay at any age.", "LEGAL_HOLD"
    )

    @model_validator(mode="after")
    def _records_outlive_evidence(self) -> Self:
        if self.record_days < self.evidence_days:
            raise ValueError("SDA_RECORD_DAYS must not be below SDA_EVIDENCE_DAYS: past states follow from manifests")
        return self
