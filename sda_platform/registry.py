"""Every table of the platform, in the order in which data flows."""

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import DEAD_LETTERS, OBSERVATIONS, RAW_RECORDS

TABLES = (
    RAW_RECORDS,
    OBSERVATIONS,
    DEAD_LETTERS,
    ELEMENT_SETS,
    ORBITAL_CATALOG,
    FUSED_TRACKS,
    CONJUNCTION_CANDIDATES,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_ALERTS,
    ALERT_DELIVERIES,
)
