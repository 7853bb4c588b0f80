"""Tables of tracks: one window fit per object and 30 s window, and the filtered state of each object."""

import numpy as np
import numpy.typing as npt
import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.formats.markings import MARKS
from sda_platform.fusion.time_bias_tables import TimeTagBias
from sda_platform.fusion.track_states import COASTING, CONFIRMED, STATES
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.correction_log import CorrectionLogModel
from sda_platform.lake.quantities import covariance_list, number_list, quantity, text_list
from sda_platform.lake.table import MarkedRows, Table
from sda_platform.units import HOUR_NS

FIRST_OPEN_WINDOW = "first_open_window"
"""Watermark of each commit: observations from before it are late, unless they were reprocessed."""

ALIVE = (CONFIRMED, COASTING)
"""Track states with enough and recent enough observations to be used downstream."""

TRACK_MEMORY_NS = 2 * HOUR_NS
"""The longest span of windows that a track is filtered from, event time; older information is in the refined
elements."""

STATE_COLUMNS = ("x_km", "y_km", "z_km", "vx_km_s", "vy_km_s", "vz_km_s")
STATE_AND_COVARIANCE = (*STATE_COLUMNS, "covariance")

AREAS = ("drag_area_m2_kg", "reflective_area_m2_kg")


class ObjectState(MarkedRows):
    """State and covariance of an object at an instant."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number of the object.")
    epoch_time_ns: T.LongType = quantity("ns", "Epoch of the state: the middle of its newest window.")
    x_km: T.DoubleType = quantity("km", "Position x, TEME.")
    y_km: T.DoubleType = quantity("km", "Position y, TEME.")
    z_km: T.DoubleType = quantity("km", "Position z, TEME.")
    vx_km_s: T.DoubleType = quantity("km/s", "Velocity x, TEME.")
    vy_km_s: T.DoubleType = quantity("km/s", "Velocity y, TEME.")
    vz_km_s: T.DoubleType = quantity("km/s", "Velocity z, TEME.")
    covariance: T.ArrayType = covariance_list(
        6, "6×6 covariance of the state, TEME, lower triangle by rows (21 terms; km², km²/s, km²/s²)."
    )


class FusedTrack(ObjectState, CorrectionLogModel):
    """State and covariance of an object at the middle of a window, fitted to all sensors' observations in it."""

    fit_id: T.StringType = pa.Field(description="Identity of the window fit: UUIDv5 of object and window.")
    window_start_ns: T.LongType = quantity("ns", "Start of the window in event time, aligned to the Unix epoch.")
    predicted_state: T.ArrayType = number_list(
        6, "The catalogue's prediction for the epoch: x, y, z, vx, vy, vz, TEME (km, km/s).", nullable=True
    )
    predicted_covariance: T.ArrayType = covariance_list(
        6, "6×6 covariance of that prediction, the fit's prior; stored like `covariance`.", nullable=True
    )
    elements_epoch_ns: T.LongType = quantity("ns", "Epoch of the element set of the prediction.", nullable=True)
    offset_radial_km: T.DoubleType = quantity("km", "Fitted minus predicted position, radial.")
    offset_in_track_km: T.DoubleType = quantity("km", "Fitted minus predicted position, in-track.")
    offset_cross_track_km: T.DoubleType = quantity("km", "Fitted minus predicted position, cross-track.")
    chi_square: T.DoubleType = pa.Field(ge=0, description="Weighted sum of squared residuals after the fit.")
    degrees_of_freedom: T.LongType = pa.Field(ge=0, description="Measured components in the fit.")
    radar_count: T.LongType = pa.Field(ge=0, description="Radar observations in the fit.")
    optical_count: T.LongType = pa.Field(ge=0, description="Optical observations in the fit.")
    isl_count: T.LongType = pa.Field(ge=0, description="Inter-satellite-link states in the fit.")
    rejected_count: T.LongType = pa.Field(ge=0, description="Observations that the fit rejected as outliers.")
    observation_ids: T.ArrayType = text_list("The observations in the fit, sorted.", least=1)
    half_fits: T.ArrayType = number_list(
        27,
        "Of directions from several observers: the fits of the main observer and of the others, "
        "each a state (6) and its covariance (21).",
        several=True,
        nullable=True,
    )


FUSED_TRACKS = Table(
    "fused_tracks",
    "fusion",
    FusedTrack,
    ("fit_id", "sequence", "op"),
    "window_start_ns",
    lineage={
        "observation_ids": [("observations", "observation_id")],
        "window_start_ns": [("observations", "sensor_time_ns")],
        "norad_id": [("orbital_catalog", "norad_id")],
        **{name: [("observations", name)] for name in MARKS},
        **{
            name: [("observations", c) for c in ("range_m", "azimuth_rad", "right_ascension_rad", "x_m")]
            for name in STATE_AND_COVARIANCE
        },
    },
    consumes=(OBSERVATIONS, RAW_RECORDS),
    reads=(ORBITAL_CATALOG,),
    # A window is fitted again when an estimate of the time-tag biases of its sensors arrives.
    feedback=lambda: (TIME_TAG_BIASES,),
    refuses_rows=True,
)
TIME_TAG_BIASES: Table = Table(
    "time_tag_biases",
    "fusion",
    TimeTagBias,
    ("source_id", "term_start_ns"),
    "term_start_ns",
    lineage={
        "source_id": [("observations", "source_id")],
        "term_start_ns": [("observations", "sensor_time_ns")],
        "bound_s": [("observations", "clock_quality"), ("observations", "clock_age_s")],
        **{
            name: [("observations", c) for c in ("sensor_time_ns", "range_m", "right_ascension_rad", "x_m")]
            for name in ("offset_s", "sigma_s", "residual_rms")
        },
    },
    consumes=(FUSED_TRACKS,),
    reads=(ORBITAL_CATALOG, OBSERVATIONS),
)


class Track(ObjectState):
    """Filtered state of an object over all its windows, and the state of its track; one row per object."""

    state: T.StringType = pa.Field(
        isin=list(STATES),
        description="new: fewer than three windows; confirmed; coasting: not seen for 2 min; lost: not for 24 h (a new "
        "one: 10 min).",
    )
    state_since_ns: T.LongType = quantity("ns", "When the state began, event time.")
    last_seen_ns: T.LongType = quantity("ns", "Middle of the newest window in which the object was observed.")
    streak: T.LongType = pa.Field(ge=0, description="Its latest windows without a gap of 2 min (new, returning).")
    windows: T.LongType = pa.Field(ge=0, description="Windows that the state is filtered over.")
    track_id: T.StringType = pa.Field(description="The track's newest window fit: fit_id in fused_tracks.")
    position_sigma_m: T.DoubleType = quantity("m", "1-sigma of the position.", ge=0)
    drag_area_m2_kg: T.DoubleType = quantity("m2/kg", "Drag area over mass, estimated.", nullable=True)
    drag_area_sigma_m2_kg: T.DoubleType = quantity("m2/kg", "1-sigma of that area.", nullable=True, ge=0)
    reflective_area_m2_kg: T.DoubleType = quantity(
        "m2/kg", "Reflective area over mass (radiation pressure), estimated.", nullable=True
    )
    reflective_area_sigma_m2_kg: T.DoubleType = quantity("m2/kg", "1-sigma of that area.", nullable=True, ge=0)
    joint_covariance: T.ArrayType = covariance_list(
        8, "8×8 covariance of state, drag area and reflective area, lower triangle by rows (36 terms).", nullable=True
    )
    innovation: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="Squared normalised innovation of the newest window."
    )
    innovation_size: T.LongType = pa.Field(ge=0, description="Degrees of freedom of the innovation.")
    unexplained_windows: T.LongType = pa.Field(ge=0, description="Windows set aside as inconsistent with the others.")
    manoeuvre_time_ns: T.LongType = quantity(
        "ns",
        "Suspected manoeuvre: middle of the first window that contradicts the covariance, or the set's epoch.",
        nullable=True,
    )
    last_manoeuvre_ns: T.LongType = quantity(
        "ns", "The last suspected manoeuvre, also after its windows have left the track's memory.", nullable=True
    )
    manoeuvre_speed_m_s: T.DoubleType = quantity(
        "m/s", "Magnitude of the velocity change, if known.", nullable=True, ge=0
    )
    manoeuvre_sigma_m_s: T.DoubleType = quantity("m/s", "1-sigma of that magnitude.", nullable=True, ge=0)
    kept_time_ns: T.LongType = quantity(
        "ns", "Window from which the filter continues; null: from the first.", nullable=True
    )
    kept_orbit: T.ArrayType = number_list(
        44,
        "Orbit after it: state (6, GCRF, km and km/s), both areas (m2/kg), and the lower triangle "
        "of their covariance (36).",
        nullable=True,
    )
    kept_unexplained: T.LongType = pa.Field(nullable=True, ge=0, description="Windows set aside until that window.")
    kept_basis: T.StringType = pa.Field(
        nullable=True,
        description="Digest of inputs; with others the filter starts anew.",
    )
    as_of_ns: T.LongType = quantity("ns", "Mission time at which the platform concluded this.")


TRACKS = Table(
    "tracks",
    "fusion",
    Track,
    ("norad_id",),
    "epoch_time_ns",
    lineage={
        "norad_id": [("fused_tracks", "norad_id")],
        "track_id": [("fused_tracks", "fit_id")],
        **{name: [("fused_tracks", name)] for name in MARKS},
        **{name: [("fused_tracks", c) for c in STATE_AND_COVARIANCE] for name in STATE_AND_COVARIANCE},
        **{name: [("fused_tracks", c) for c in STATE_AND_COVARIANCE] for name in AREAS},
        **{name: [("fused_tracks", "window_start_ns")] for name in ("state", "state_since_ns", "last_seen_ns")},
    },
    replaces_rows=True,
    consumes=(FUSED_TRACKS,),
    reads=(ORBITAL_CATALOG,),
    refuses_rows=True,
)

TABLES = (FUSED_TRACKS, TIME_TAG_BIASES, TRACKS)


def lower_triangles(covariance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return covariances (n, k, k) as columns store them: lower triangles by rows, (n, k (k + 1) / 2)."""
    rows, columns = np.tril_indices(covariance.shape[1])
    return covariance[:, rows, columns]


def covariance_from_lower(terms: npt.ArrayLike, size: int = 6) -> npt.NDArray[np.float64]:
    """Return covariances (n, 6, 6) from lower triangles (n, 21) as stored, or of another size."""
    rows, columns = np.tril_indices(size)
    lower = np.asarray(terms, dtype=np.float64).reshape(-1, len(rows))
    full = np.zeros((len(lower), size, size))
    full[:, rows, columns] = lower
    return full + np.tril(full, -1).swapaxes(1, 2)
