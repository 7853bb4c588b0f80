"""What is screened and how far ahead, as a Dagster resource so that a run records it."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.fleet import protected_fleet


class ScreeningResource(dg.ConfigurableResource["ScreeningResource"]):
    """The protected fleet, the horizon and the threshold of screenings."""

    fleet: str = Field("", description="CSV of the protected fleet; empty: the shipped one.")
    horizon_h: float = Field(24.0, description="Span of a screening from its as_of, hours.")
    refresh_h: float = Field(6.0, description="Age from which a full screening is repeated, hours.")
    threshold_km: float = Field(5.0, description="Miss distance below which an approach is a candidate, km.")

    def fleet_norad_ids(self) -> list[int]:
        """Catalogue numbers of the protected fleet."""
        return [member.norad_id for member in protected_fleet(Path(self.fleet) if self.fleet else None)]

    @property
    def horizon_ns(self) -> int:
        """Span of a screening, ns."""
        return round(self.horizon_h * 3600 * NANOSECONDS_PER_SECOND)

    @property
    def refresh_ns(self) -> int:
        """Age from which a full screening is repeated, ns."""
        return round(self.refresh_h * 3600 * NANOSECONDS_PER_SECOND)
