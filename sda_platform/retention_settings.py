"""How long the platform keeps what a later question needs, as settings."""

from typing import Self

from pydantic import model_validator

from sda_platform.setting_sections import SettingsSection, setting


class RetentionSettings(SettingsSection):
    """How long what a later question needs is kept (`lake.retention`)."""

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
    legal_hold: bool = setting(False, "Whether neither of the two is removed at any age, and no tag.", "LEGAL_HOLD")

    @model_validator(mode="after")
    def _records_outlive_evidence(self) -> Self:
        if self.record_days < self.evidence_days:
            raise ValueError("SDA_RECORD_DAYS must not be below SDA_EVIDENCE_DAYS: past states follow from manifests")
        return self
