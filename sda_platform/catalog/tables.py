"""Tables of package catalog: element sets, the best one of each object, ephemerides, edits, and conflicts.

Elements are mean elements for SGP4 in TEME of date, with the names and units of the CCSDS OMM (502.0-B-3).
"""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.catalog.held_model import HeldElementSet
from sda_platform.catalog.satellite_model import LandedSatelliteRecord, Satellite
from sda_platform.formats.edits import ATTRIBUTES
from sda_platform.formats.satcat import FACTS
from sda_platform.lake.quantities import number_list, quantity
from sda_platform.lake.table import LandingColumns, Provenance, Table

ELEMENTS_FEED = "elements"
"""The landing zone of element sets."""
EPHEMERIDES_FEED = "ephemerides"
"""The landing zone of ephemerides."""
_TIMES = {"elementType": T.LongType(), "containsNull": True}
BY_MESSAGE, BY_DEFAULT = "message", "default"
"""Where the covariances of an ephemeris come from: its author, or the default growth."""
SATELLITES_FEED = "satellites"
"""The landing zone of satellite catalogues and decay messages."""
EDITS_FEED = "edits"
"""The landing zone of edits that analysts make, here or at another site."""
ELEMENTS = "elements"
"""The attribute that sources of element sets claim; edits claim the others (`formats.edits.ATTRIBUTES`)."""
IN_FORCE, LOST, CONCURRENT, SUPERSEDED, HELD = "in force", "lost", "concurrent", "superseded", "held"
"""What became of a claim: it holds, a better one holds, other edits contradict it, or an edit had seen it."""
CAME_INTO_FORCE = "came_into_force"
"""Among the counts of a commit of `orbital_catalog`: usable sets, consumed earlier, whose epoch has come since the last
commit. If the commit consumed nothing, they are its cause."""


class Elements(Provenance):
    """The orbit of one object by one element set."""

    object_name: T.StringType = pa.Field(nullable=True, description="Common name.")
    international_designator: T.StringType = pa.Field(nullable=True, description="COSPAR designator: 1998-067A.")
    epoch_time_ns: T.LongType = quantity("ns", "Epoch of the elements, Unix time UTC.", nullable=True)
    mean_motion_rev_per_day: T.DoubleType = quantity("rev/day", "Mean motion (Kozai).", nullable=True, gt=0, lt=20)
    eccentricity: T.DoubleType = pa.Field(nullable=True, ge=0, lt=1, description="Eccentricity.")
    inclination_deg: T.DoubleType = quantity("deg", "Inclination.", nullable=True, ge=0, le=180)
    raan_deg: T.DoubleType = quantity("deg", "Right ascension of the ascending node.", nullable=True)
    arg_of_pericenter_deg: T.DoubleType = quantity("deg", "Argument of pericentre.", nullable=True)
    mean_anomaly_deg: T.DoubleType = quantity("deg", "Mean anomaly.", nullable=True)
    bstar_per_earth_radius: T.DoubleType = quantity("1/earth radius", "SGP4 drag term B*.", nullable=True)
    mean_motion_dot_rev_per_day2: T.DoubleType = quantity(
        "rev/day²", "First derivative of mean motion, OMM convention.", nullable=True
    )
    mean_motion_ddot_rev_per_day3: T.DoubleType = quantity(
        "rev/day³", "Second derivative of mean motion, OMM convention.", nullable=True
    )
    element_set_number: T.LongType = pa.Field(nullable=True, description="The originator's number of the set.")
    originator: T.StringType = pa.Field(nullable=True, description="Organisation that published the set.")
    classification: T.StringType = pa.Field(
        nullable=True, description="Classification: U, C, S, or another text; null: unclassified, as in an OMM."
    )
    revolution_at_epoch: T.LongType = pa.Field(nullable=True, description="Number of the revolution at the epoch.")
    decay_time_ns: T.LongType = quantity("ns", "Decay of the object as the source states it, UTC.", nullable=True)
    data_mode: T.StringType = pa.Field(nullable=True, description="What the data is of, as it states; null: not known.")
    owner: T.StringType = pa.Field(nullable=True, description="Whose data it is, as its source states.")
    source_priority: T.IntegerType = pa.Field(description="Rank of the source that brought the set; higher wins.")


class LandedElementSet(Elements, LandingColumns):
    """Bronze: one row per landed element set, for ever; a set that cannot be used is a row with an error."""

    norad_id: T.LongType = pa.Field(
        nullable=True, ge=1, description="Catalogue number (BIGINT: real ids pass the TLE's 339,999)."
    )


class CatalogEntry(Elements):
    """Of each object the set in force, by (epoch, source priority, set number, originator, segment, record)."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number; by edits, another one than was published.")
    source_name: T.StringType = pa.Field(nullable=True, description="Who brought the set to us; null: not recorded.")
    radial_error_scale: T.DoubleType = pa.Field(
        nullable=True, gt=0, description="Growth of the radial error, times that of its regime, by its own history."
    )
    in_track_error_scale: T.DoubleType = pa.Field(nullable=True, gt=0, description="The same in-track.")
    cross_track_error_scale: T.DoubleType = pa.Field(nullable=True, gt=0, description="The same cross-track.")
    history_differences: T.LongType = pa.Field(
        nullable=True, ge=0, description="Differences between its sets of the last 30 days that the scales rest on."
    )


class EphemerisRow(Provenance, LandingColumns):
    """Bronze: one row per landed ephemeris, for ever; one that cannot be used is a row with an error.

    States and covariances are TEME of date at UTC instants, whatever frame and time system the message has.
    """

    norad_id: T.LongType = pa.Field(
        nullable=True, ge=1, description="Catalogue number; of a designator the one that the catalogue has."
    )
    object_name: T.StringType = pa.Field(nullable=True, description="OBJECT_NAME of the message.")
    object_id: T.StringType = pa.Field(
        nullable=True, description="OBJECT_ID of the message: international designator or catalogue number."
    )
    originator: T.StringType = pa.Field(nullable=True, description="Who made the ephemeris.")
    message_id: T.StringType = pa.Field(nullable=True, description="The originator's id of the message.")
    created_time_ns: T.LongType = quantity("ns", "When the message was made, Unix time UTC.", nullable=True)
    reference_frame: T.StringType = pa.Field(nullable=True, description="Frame of the states as they came.")
    first_time_ns: T.LongType = quantity("ns", "Time of the first state, Unix time UTC.", nullable=True)
    last_time_ns: T.LongType = quantity("ns", "Time of the last state, Unix time UTC.", nullable=True)
    usable_from_ns: T.LongType = quantity("ns", "Begin of the span to interpolate in, Unix time UTC.", nullable=True)
    usable_until_ns: T.LongType = quantity("ns", "End of the span to interpolate in, Unix time UTC.", nullable=True)
    state_time_ns: T.ArrayType = pa.Field(
        dtype_kwargs=_TIMES, nullable=True, description="Times of the n states, ascending, Unix time UTC, ns."
    )
    state: T.ArrayType = number_list(
        6, "n states one after the other, TEME: 3 km and 3 km/s each.", several=True, nullable=True
    )
    covariance_time_ns: T.ArrayType = pa.Field(
        dtype_kwargs=_TIMES, nullable=True, description="Times of the m covariances, ascending, Unix time UTC, ns."
    )
    covariance: T.ArrayType = number_list(
        21,
        "m lower triangles by rows one after the other, TEME (21 terms each; km², km²/s, km²/s²).",
        several=True,
        nullable=True,
    )
    covariance_source: T.StringType = pa.Field(
        nullable=True,
        isin=[BY_MESSAGE, BY_DEFAULT],
        description="Whose covariances these are: of the message, or assumed.",
    )


class CatalogEdit(Provenance, LandingColumns):
    """Bronze: one row per landed edit of a catalogue object, for ever; one that cannot be used has an error."""

    edit_id: T.StringType = pa.Field(
        nullable=True, description="SHA-256 of its content; a second delivery has the same."
    )
    norad_id: T.LongType = pa.Field(nullable=True, ge=1, description="Catalogue number of the edited object.")
    attribute: T.StringType = pa.Field(nullable=True, isin=list(ATTRIBUTES), description="What it sets.")
    value: T.StringType = pa.Field(nullable=True, description="The new value; empty: it removes what was set.")
    origin: T.StringType = pa.Field(nullable=True, description="The site that made it.")
    lamport: T.LongType = pa.Field(nullable=True, ge=1, description="Lamport time, for display only.")
    vector: T.StringType = pa.Field(
        nullable=True, description="Version vector as JSON: edits of this attribute that it had seen, by site."
    )
    editor: T.StringType = pa.Field(nullable=True, description="Who made it.")
    edited_time_ns: T.LongType = quantity("ns", "The editor's clock, which decides nothing.", nullable=True)
    signature: T.StringType = pa.Field(nullable=True, description="The site's signature; null: it is not signed.")


class Claim(Provenance):
    """The value that one source claims for one attribute of one object, and whether it is in force, and why."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number.")
    attribute: T.StringType = pa.Field(isin=[ELEMENTS, *ATTRIBUTES], description="What is claimed.")
    claimant: T.StringType = pa.Field(
        description="Of elements who brought the sets to us, empty: not recorded; else the edit."
    )
    originator: T.StringType = pa.Field(
        nullable=True, description="Of elements: who published the claimant's best set, empty: it names none."
    )
    origin: T.StringType = pa.Field(nullable=True, description="Of an edit: the site that made it.")
    value: T.StringType = pa.Field(nullable=True, description="Of an edit: what it sets.")
    lamport: T.LongType = pa.Field(nullable=True, ge=1, description="Of an edit: Lamport time, for display only.")
    vector: T.StringType = pa.Field(nullable=True, description="Of an edit: its version vector, as JSON.")
    editor: T.StringType = pa.Field(nullable=True, description="Of an edit: who made it.")
    edited_time_ns: T.LongType = quantity("ns", "Of an edit: the editor's clock.", nullable=True)
    epoch_time_ns: T.LongType = quantity("ns", "Of elements: epoch of the claimant's best set.", nullable=True)
    element_set_number: T.LongType = pa.Field(nullable=True, description="Of elements: the originator's set number.")
    source_priority: T.IntegerType = pa.Field(nullable=True, description="Of elements: rank of the set's source.")
    outcome: T.StringType = pa.Field(
        isin=[IN_FORCE, LOST, CONCURRENT, SUPERSEDED, HELD], description="What became of the claim."
    )
    reason: T.StringType = pa.Field(nullable=True, description="Why it does not hold; null: it does.")


ERROR_SCALES = ("radial_error_scale", "in_track_error_scale", "cross_track_error_scale")
HISTORY_COLUMNS = (*ERROR_SCALES, "history_differences")
"""The columns of `orbital_catalog` that come from the object's history, not from the set in force."""
_ELEMENTS = [name for name in Elements.to_schema().columns if name != "commit_sequence"] + ["norad_id"]

ELEMENT_SETS = Table(
    "element_sets",
    "catalog",
    LandedElementSet,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(ELEMENTS_FEED,),
)
CATALOG_EDITS = Table(
    "catalog_edits",
    "catalog",
    CatalogEdit,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(EDITS_FEED,),
)
SATELLITE_RECORDS = Table(
    "satellite_records",
    "catalog",
    LandedSatelliteRecord,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(SATELLITES_FEED,),
)
SATELLITE_CATALOG = Table(
    "satellite_catalog",
    "catalog",
    Satellite,
    ("norad_id",),
    "received_time_ns",
    lineage={
        **{name: [("satellite_records", name)] for name in ("norad_id", *FACTS) if name != "decay_time_ns"},
        "stated_decay_time_ns": [("satellite_records", "decay_time_ns")],
        "decay_time_ns": [("satellite_records", "decay_time_ns"), ("catalog_edits", "value")],
        "decay_is_decided": [("catalog_edits", "value")],
    },
    replaces_rows=True,
    consumes=(SATELLITE_RECORDS, CATALOG_EDITS),
)
HELD_ELEMENT_SETS = Table(
    "held_element_sets",
    "catalog",
    HeldElementSet,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    lineage={
        **{name: [("element_sets", name)] for name in ("epoch_time_ns", "object_name", "originator", "source_name")},
        "norad_id": [("element_sets", "norad_id"), ("catalog_edits", "value")],
        "reason": [("element_sets", name) for name in _ELEMENTS],
        "released_by": [("catalog_edits", "editor")],
    },
    replaces_rows=True,
    consumes=(ELEMENT_SETS, CATALOG_EDITS),
)
ORBITAL_CATALOG = Table(
    "orbital_catalog",
    "catalog",
    CatalogEntry,
    ("norad_id",),
    "epoch_time_ns",
    lineage={
        **{name: [("element_sets", name)] for name in (*_ELEMENTS, "source_name")},
        "norad_id": [("element_sets", "norad_id"), ("catalog_edits", "value")],
        "object_name": [("element_sets", "object_name"), ("catalog_edits", "value")],
        "decay_time_ns": [("element_sets", "decay_time_ns"), ("satellite_catalog", "decay_time_ns")],
        **{
            name: [("element_sets", c) for c in ("epoch_time_ns", "mean_motion_rev_per_day", "mean_anomaly_deg")]
            for name in HISTORY_COLUMNS
        },
    },
    replaces_rows=True,
    consumes=(ELEMENT_SETS, HELD_ELEMENT_SETS, SATELLITE_CATALOG, CATALOG_EDITS),
    refuses_rows=True,
)

EPHEMERIDES = Table(
    "ephemerides",
    "catalog",
    EphemerisRow,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(EPHEMERIDES_FEED,),
    reads=(ORBITAL_CATALOG,),
)

CATALOG_CONFLICTS = Table(
    "catalog_conflicts",
    "catalog",
    Claim,
    ("norad_id", "attribute", "claimant"),
    "received_time_ns",
    lineage={
        **{name: [("element_sets", name)] for name in ("epoch_time_ns", "element_set_number", "source_priority")},
        "claimant": [("element_sets", "source_name"), ("catalog_edits", "edit_id")],
        "originator": [("element_sets", "originator")],
        **{name: [("catalog_edits", name)] for name in ("origin", "value", "lamport", "vector", "editor")},
    },
    replaces_rows=True,
    consumes=(ELEMENT_SETS, HELD_ELEMENT_SETS, CATALOG_EDITS),
)

EPHEMERIS_COLUMNS = (
    "norad_id", "created_time_ns", "received_time_ns", "segment_sha256", "segment_name", "record_number",
    "usable_from_ns", "usable_until_ns", "state_time_ns", "state", "covariance_time_ns", "covariance",
    "covariance_source", "classification", "data_mode",
)  # fmt: skip
"""What a path and its rank follow from."""
TABLES = (
    ELEMENT_SETS,
    HELD_ELEMENT_SETS,
    SATELLITE_RECORDS,
    SATELLITE_CATALOG,
    ORBITAL_CATALOG,
    EPHEMERIDES,
    CATALOG_EDITS,
    CATALOG_CONFLICTS,
)
