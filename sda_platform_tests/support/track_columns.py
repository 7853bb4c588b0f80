"""The columns of `tracks` that an assessment reads."""

import pyarrow as pa

from sda_platform.conjunction.tracked_states import TRACK_COLUMNS
from sda_platform.fusion.tables import TRACKS

SCHEMA = pa.schema([TRACKS.arrow_schema.field(name) for name in TRACK_COLUMNS])
