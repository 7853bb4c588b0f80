"""Tables of orbit determination (OD) products: element sets and ephemerides of tracked objects, and element sets of
uncatalogued ones.
"""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.formats.markings import MARKS
from sda_platform.fusion.tables import FUSED_TRACKS, STATE_AND_COVARIANCE, TIME_TAG_BIASES, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.quantities import covariance_list, number_list, quantity, text_list
from sda_platform.lake.table import MarkedRows, Table, TableModel


class DeterminedElements(MarkedRows):
    """A locally determined element set; it is published to the catalogue like any other."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number.")
    object_name: T.StringType = pa.Field(nullable=True, description="Common name.")
    international_designator: T.StringType = pa.Field(nullable=True, description="COSPAR designator: 1998-067A.")
    epoch_time_ns: T.LongType = quantity("ns", "Epoch of the elements: the newest window.")
    mean_motion_rev_per_day: T.DoubleType = quantity("rev/day", "Mean motion (Kozai).", gt=0, lt=20)
    eccentricity: T.DoubleType = pa.Field(ge=0, lt=1, description="Eccentricity.")
    inclination_deg: T.DoubleType = quantity("deg", "Inclination.", ge=0, le=180)
    raan_deg: T.DoubleType = quantity("deg", "Right ascension of the ascending node.")
    arg_of_pericenter_deg: T.DoubleType = quantity("deg", "Argument of pericentre.")
    mean_anomaly_deg: T.DoubleType = quantity("deg", "Mean anomaly.")
    bstar_per_earth_radius: T.DoubleType = quantity("1/earth radius", "SGP4 drag term B*.")
    position_sigma_m: T.DoubleType = quantity("m", "1-sigma of the position at the epoch.", ge=0)
    as_of_ns: T.LongType = quantity("ns", "Mission time at which the platform concluded this.")


class RefinedElements(DeterminedElements):
    """Mean elements of a tracked object, from its own windows."""

    position_sigma_m: T.DoubleType = quantity(
        "m", "1-sigma of the position in the day after the epoch, root mean square.", ge=0
    )
    published_epoch_ns: T.LongType = quantity("ns", "Epoch of the element set that was refined.")
    published_sigma_m: T.DoubleType = quantity(
        "m", "1-sigma of the published set: its distance from the prediction.", ge=0
    )
    windows: T.LongType = pa.Field(ge=1, description="Windows in the fit.")
    arc_s: T.DoubleType = quantity("s", "Span from the first to the last window.", ge=0)
    innovation: T.DoubleType = pa.Field(ge=0, description="Squared normalised distance from the published set.")
    held_back_windows: T.LongType = pa.Field(
        nullable=True, ge=1, description="Last windows, which elements from the windows before them have predicted."
    )
    held_back_rms: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="Error of that prediction in units of the windows' noise, root mean square."
    )
    published_held_back_rms: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="Error of the published set's prediction, in the same units."
    )


REFINED_ELEMENTS = Table(
    "refined_elements",
    "orbit_determination",
    RefinedElements,
    ("norad_id", "epoch_time_ns"),
    "epoch_time_ns",
    lineage={
        "norad_id": [("tracks", "norad_id")],
        "epoch_time_ns": [("fused_tracks", "epoch_time_ns")],
        "published_epoch_ns": [("orbital_catalog", "epoch_time_ns")],
        **{name: [("fused_tracks", name)] for name in MARKS},
        **{
            name: [("fused_tracks", c) for c in STATE_AND_COVARIANCE]
            for name in ("mean_motion_rev_per_day", "eccentricity", "inclination_deg", "bstar_per_earth_radius")
        },
    },
    consumes=(TRACKS,),
    reads=(FUSED_TRACKS, ORBITAL_CATALOG),
    refuses_rows=True,
)


_INSTANTS = {"elementType": T.LongType(), "containsNull": True}


class RefinedEphemeris(MarkedRows):
    """The numerical prediction of a tracked object for a day, from its own windows; the newest one of each object."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number.")
    object_name: T.StringType = pa.Field(nullable=True, description="Common name.")
    international_designator: T.StringType = pa.Field(nullable=True, description="COSPAR designator: 1998-067A.")
    epoch_time_ns: T.LongType = quantity("ns", "The newest window, at which the ephemeris begins.")
    usable_from_ns: T.LongType = quantity("ns", "Begin of the span to interpolate in, Unix time UTC.")
    usable_until_ns: T.LongType = quantity("ns", "End of the span to interpolate in, Unix time UTC.")
    state_time_ns: T.ArrayType = pa.Field(
        dtype_kwargs=_INSTANTS, description="Times of the n states, ascending, Unix time UTC, ns."
    )
    state: T.ArrayType = number_list(6, "n states one after the other, TEME: 3 km and 3 km/s each.", several=True)
    covariance_time_ns: T.ArrayType = pa.Field(
        dtype_kwargs=_INSTANTS, description="Times of the m covariances, ascending, Unix time UTC, ns."
    )
    covariance: T.ArrayType = covariance_list(
        6, "m lower triangles by rows one after the other, TEME (21 terms each; km², km²/s, km²/s²).", several=True
    )
    position_sigma_m: T.DoubleType = quantity("m", "1-sigma of the position over the span, root mean square.", ge=0)
    published_epoch_ns: T.LongType = quantity("ns", "Epoch of the element set in force, which it is compared with.")
    published_sigma_m: T.DoubleType = quantity(
        "m", "1-sigma of the published set: its distance from the prediction.", ge=0
    )
    windows: T.LongType = pa.Field(ge=1, description="Windows in the track.")
    arc_s: T.DoubleType = quantity("s", "Span from the first to the last window.", ge=0)
    held_back_windows: T.LongType = pa.Field(
        ge=1, description="Last windows, which the track of the windows before them has predicted."
    )
    held_back_rms: T.DoubleType = pa.Field(
        ge=0, description="Error of that prediction in units of the windows' noise, root mean square."
    )
    published_held_back_rms: T.DoubleType = pa.Field(
        ge=0, description="Error of the published set's prediction, in the same units."
    )
    as_of_ns: T.LongType = quantity("ns", "Mission time at which the platform concluded this.")


REFINED_EPHEMERIDES = Table(
    "refined_ephemerides",
    "orbit_determination",
    RefinedEphemeris,
    ("norad_id",),
    "epoch_time_ns",
    lineage={
        "norad_id": [("tracks", "norad_id")],
        "epoch_time_ns": [("fused_tracks", "epoch_time_ns")],
        "published_epoch_ns": [("orbital_catalog", "epoch_time_ns")],
        **{name: [("fused_tracks", name)] for name in MARKS},
        **{name: [("fused_tracks", c) for c in STATE_AND_COVARIANCE] for name in ("state", "covariance")},
    },
    replaces_rows=True,
    keeps_other_files=True,
    consumes=(TRACKS,),
    reads=(FUSED_TRACKS, ORBITAL_CATALOG),
    refuses_rows=True,
)


class ProvisionalElements(DeterminedElements):
    """Mean elements of an uncatalogued object, from uncorrelated tracks; numbered from 80000."""

    position_sigma_m: T.DoubleType = quantity("m", "1-sigma of the position at the epoch.", ge=0)
    tracklets: T.ArrayType = text_list("The tracklets, by source and the source's own track number.", least=1)
    readings: T.LongType = pa.Field(ge=1, description="Observations in the tracklets.")
    observation_ids: T.ArrayType = text_list("Ids of these observations, sorted.", least=1)
    first_seen_ns: T.LongType = quantity("ns", "Event time of the first observation.")
    chi_square: T.DoubleType = pa.Field(
        ge=0,
        description="Weighted sum of squared residuals, with that of an earlier set if any.",
    )
    degrees_of_freedom: T.LongType = pa.Field(
        ge=0, description="Measured components less six unknowns; all with an earlier set."
    )
    covariance: T.ArrayType = covariance_list(
        6,
        "6×6 covariance in equinoctial form (mean motion in rad/s, e sin, e cos, tan(i/2) sin, "
        "tan(i/2) cos, mean longitude in rad), lower triangle by rows (21 terms).",
        nullable=True,
    )
    orbit: T.ArrayType = number_list(
        44,
        "Numerical orbit at the epoch; stored like kept_orbit of tracks.",
        nullable=True,
    )
    earlier_epoch_ns: T.LongType = quantity(
        "ns",
        "Epoch of the earlier set that counts as evidence; null: none.",
        nullable=True,
    )


PROVISIONAL_ELEMENTS = Table(
    "provisional_elements",
    "orbit_determination",
    ProvisionalElements,
    ("norad_id", "epoch_time_ns"),
    "epoch_time_ns",
    lineage={
        "observation_ids": [("observations", "observation_id")],
        "tracklets": [("observations", "native_track_id")],
        "first_seen_ns": [("observations", "sensor_time_ns")],
        **{name: [("observations", name)] for name in MARKS},
        **{
            name: [("observations", c) for c in ("range_m", "range_rate_m_s", "azimuth_rad", "elevation_rad")]
            for name in ("mean_motion_rev_per_day", "eccentricity", "inclination_deg", "raan_deg", "covariance")
        },
    },
    consumes=(FUSED_TRACKS,),
    reads=(ORBITAL_CATALOG, TIME_TAG_BIASES, OBSERVATIONS),
    refuses_rows=True,
)


class ElementPublication(TableModel):
    """One commit of element sets from orbit determination, and the landing segment that it became."""

    source_table: T.StringType = pa.Field(description="The table whose commit was published.")
    source_commit_sequence: T.LongType = pa.Field(ge=1, description="The commit's sequence in that table.")
    zone: T.StringType = pa.Field(description="The landing zone that received the segment.")
    segment_name: T.StringType = pa.Field(description="Name of the segment in its landing zone.")
    segment_sha256: T.StringType = pa.Field(description="SHA-256 of the sealed segment's bytes.")
    element_sets: T.LongType = pa.Field(ge=1, description="How many element sets it holds.")
    sealed_time_ns: T.LongType = quantity("ns", "Mission time of the published commit, Unix time UTC.")


ELEMENT_PUBLICATIONS = Table(
    "element_publications",
    "orbit_determination",
    ElementPublication,
    ("source_table", "source_commit_sequence"),
    "sealed_time_ns",
    consumes=(REFINED_ELEMENTS, PROVISIONAL_ELEMENTS),
)

TABLES = (REFINED_ELEMENTS, REFINED_EPHEMERIDES, PROVISIONAL_ELEMENTS, ELEMENT_PUBLICATIONS)
