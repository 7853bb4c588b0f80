"""Fit quality: shares of used and rejected observations, and residuals compared with the noise model."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# Chi-square per degree of freedom of all windows: far from one, the noise or the orbits differ from their models.
_CHI_SQUARE = (0.3, 2.0)
_MOST_REJECTED = 0.1


@dataclass(frozen=True)
class FitQuality:
    """Use of observations in the window fits of the report's span; shares in [0, 1]."""

    windows: int
    observations: int
    used_share: float
    rejected_share: float
    chi_square_per_degree: float

    @classmethod
    def of(cls, windows: pa.Table, observations: pa.Table) -> "FitQuality":
        """From the current fits of a span, and the observations in it."""
        used = sum(map(len, windows["observation_ids"].to_pylist()))
        rejected, freedom = (pc.sum(windows[name]).as_py() or 0 for name in ("rejected_count", "degrees_of_freedom"))
        return cls(
            windows=windows.num_rows,
            observations=observations.num_rows,
            used_share=used / max(observations.num_rows, 1),
            rejected_share=rejected / max(used + rejected, 1),
            chi_square_per_degree=(pc.sum(windows["chi_square"]).as_py() or 0.0) / max(freedom, 1),
        )

    def problems(self) -> list[str]:
        """Describe all problems found in the fits."""
        low, high = _CHI_SQUARE
        found = []
        if self.windows and not low <= self.chi_square_per_degree <= high:
            found.append(f"chi-square per degree of freedom is {self.chi_square_per_degree:.2f}, not {low} to {high}")
        if self.rejected_share > _MOST_REJECTED:
            found.append(f"{self.rejected_share:.0%} of the observations in fits are rejected, no more than 10% may be")
        return found
