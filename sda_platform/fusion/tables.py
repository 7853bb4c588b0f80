"""Tables of the fusion room: one orbit fit per object and 30 s window, as a journal of inserts and retracts."""

import numpy as np
import numpy.typing as npt
import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.lake.journal import JournalModel
from sda_platform.lake.table import Table

FIRST_OPEN_WINDOW = "first_open_window"
"""Among the watermarks of each commit: observations from before it came too late, unless they were reprocessed."""

_LOWER = np.tril_indices(6)


class FusedTrack(JournalModel):
    """State and covariance of an object at the middle of a window, from every sensor's observations in it."""

    track_id: T.StringType = pa.Field(description="UUIDv5 of object and window.")
    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number that the observations were associated with.")
    window_start_ns: T.LongType = pa.Field(
        description="Start of the window in event time, aligned to the Unix epoch.", metadata={"unit": "ns"}
    )
    epoch_time_ns: T.LongType = pa.Field(
        description="Epoch of the state: the middle of the window.", metadata={"unit": "ns"}
    )
    x_km: T.DoubleType = pa.Field(description="Position x, TEME.", metadata={"unit": "km"})
    y_km: T.DoubleType = pa.Field(description="Position y, TEME.", metadata={"unit": "km"})
    z_km: T.DoubleType = pa.Field(description="Position z, TEME.", metadata={"unit": "km"})
    vx_km_s: T.DoubleType = pa.Field(description="Velocity x, TEME.", metadata={"unit": "km/s"})
    vy_km_s: T.DoubleType = pa.Field(description="Velocity y, TEME.", metadata={"unit": "km/s"})
    vz_km_s: T.DoubleType = pa.Field(description="Velocity z, TEME.", metadata={"unit": "km/s"})
    covariance: T.ArrayType = pa.Field(
        dtype_kwargs={"elementType": T.DoubleType(), "containsNull": True},
        description="6×6 covariance of the state, TEME, lower triangle by rows (21 terms; km², km²/s, km²/s²).",
    )
    offset_radial_km: T.DoubleType = pa.Field(
        description="Fitted minus predicted position, radial.", metadata={"unit": "km"}
    )
    offset_in_track_km: T.DoubleType = pa.Field(
        description="Fitted minus predicted position, in-track.", metadata={"unit": "km"}
    )
    offset_cross_track_km: T.DoubleType = pa.Field(
        description="Fitted minus predicted position, cross-track.", metadata={"unit": "km"}
    )
    chi_square: T.DoubleType = pa.Field(ge=0, description="Weighted sum of squared residuals after the fit.")
    degrees_of_freedom: T.LongType = pa.Field(ge=0, description="Measured components in the fit.")
    radar_count: T.LongType = pa.Field(ge=0, description="Radar observations in the fit.")
    optical_count: T.LongType = pa.Field(ge=0, description="Optical observations in the fit.")
    isl_count: T.LongType = pa.Field(ge=0, description="Inter-satellite-link states in the fit.")
    rejected_count: T.LongType = pa.Field(ge=0, description="Observations that the fit rejected as outliers.")
    observation_ids: T.ArrayType = pa.Field(
        dtype_kwargs={"elementType": T.StringType(), "containsNull": True},
        description="The observations in the fit, sorted.",
    )


FUSED_TRACKS = Table(
    "fused_tracks",
    "fusion",
    FusedTrack,
    ("track_id", "sequence", "op"),
    "window_start_ns",
    sources={
        "observation_ids": [("observations", "observation_id")],
        "window_start_ns": [("observations", "sensor_time_ns")],
        "norad_id": [("orbital_catalog", "norad_id")],
        **{
            name: [("observations", c) for c in ("range_m", "azimuth_rad", "right_ascension_rad", "x_m")]
            for name in ("x_km", "y_km", "z_km", "vx_km_s", "vy_km_s", "vz_km_s", "covariance")
        },
    },
)


def lower_triangles(covariance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Covariances (n, 6, 6) as the ``covariance`` column stores them: lower triangles by rows, (n, 21)."""
    return covariance[:, _LOWER[0], _LOWER[1]]


def covariance_from_lower(terms: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Covariances (n, 6, 6) from lower triangles (n, 21) as stored."""
    lower = np.asarray(terms, dtype=np.float64).reshape(-1, 21)
    full = np.zeros((len(lower), 6, 6))
    full[:, _LOWER[0], _LOWER[1]] = lower
    return full + np.tril(full, -1).swapaxes(1, 2)
