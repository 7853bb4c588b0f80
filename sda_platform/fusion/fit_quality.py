"""How readings were taken into window fits, and whether their residuals are as large as the noise says."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# Chi-square per degree of freedom of all windows: far from one, the noise or the orbits are not what we think.
_CHI_SQUARE = (0.3, 2.0)
_MOST_REJECTED = 0.1


@dataclass(frozen=True)
class FitQuality:
    """Of the windows in the report's span, how readings were taken in; shares in [0, 1]."""

    windows: int
    readings: int
    used_share: float
    rejected_share: float
    chi_square_per_degree: float

    @classmethod
    def of(cls, windows: pa.Table, readings: pa.Table) -> "FitQuality":
        """Of the standing fits of a span, and the observations in it."""
        used = sum(map(len, windows["observation_ids"].to_pylist()))
        rejected, freedom = (pc.sum(windows[name]).as_py() or 0 for name in ("rejected_count", "degrees_of_freedom"))
        return cls(
            windows=windows.num_rows,
            readings=readings.num_rows,
            used_share=used / max(readings.num_rows, 1),
            rejected_share=rejected / max(used + rejected, 1),
            chi_square_per_degree=(pc.sum(windows["chi_square"]).as_py() or 0.0) / max(freedom, 1),
        )

    def problems(self) -> list[str]:
        """What is wrong, in words."""
        low, high = _CHI_SQUARE
        found = []
        if self.windows and not low <= self.chi_square_per_degree <= high:
            found.append(f"chi-square per degree of freedom is {self.chi_square_per_degree:.2f}, not {low} to {high}")
        if self.rejected_share > _MOST_REJECTED:
            found.append(f"{self.rejected_share:.0%} of the readings in fits are rejected, no more than 10% may be")
        return found
