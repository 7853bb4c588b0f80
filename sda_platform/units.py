"""Units of time. Instants are whole nanoseconds since the Unix epoch, UTC; spans in settings and texts are seconds."""

from typing import Final

SECOND_NS: Final = 1_000_000_000
MINUTE_NS: Final = 60 * SECOND_NS
HOUR_NS: Final = 60 * MINUTE_NS
DAY_NS: Final = 24 * HOUR_NS
DAY_S: Final = 86_400.0
DAY_MIN: Final = 1_440.0
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
