"""Failures that the user caused or can correct: the command line shows their text and no traceback."""

from deltalake.exceptions import DeltaError

from sda_platform.catalog.editing import NothingToResolve
from sda_platform.catalog.lookup import UnknownObject
from sda_platform.catalog.sites import SitesError
from sda_platform.conjunction.alert_ids import UnknownAlert
from sda_platform.edge.config import ConfigError
from sda_platform.evidence.errors import EvidenceError
from sda_platform.formats.conversion import ConversionError
from sda_platform.formats.edits import BadEdit
from sda_platform.formats.listings import ListingError
from sda_platform.ground.commanders import CommandersError
from sda_platform.lake.errors import LakeError
from sda_platform.landing.first_lines import MappingError
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.registry import UnknownTable
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.lake_lock import LakeInUse
from sda_platform.runtime.platform_home import AlreadyRunning
from sda_platform.serving.errors import ServingError
from sda_platform.signing_keys import UnusableKey

EXPECTED: tuple[type[Exception], ...] = (
    AlreadyRunning,
    BadEdit,
    CommandersError,
    ConfigError,
    ConversionError,
    DeltaError,  # a log that cannot be read; `sda lake verify` reports the damage
    EvidenceError,
    ListingError,
    LakeError,
    LakeInUse,
    MappingError,
    NothingToResolve,
    OSError,  # a full disk, a directory that may not be written: its text names the path and the reason
    PartnerFileError,
    PlatformError,
    ServingError,
    SitesError,
    UnknownAlert,
    UnknownObject,
    UnknownTable,
    UnusableKey,
)
