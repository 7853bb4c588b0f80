"""The feeds: what each source promises about time, order and delivery."""

from dataclasses import dataclass

from sda_platform.units import DAY_NS, HOUR_NS, SECOND_NS


@dataclass(frozen=True)
class Feed:
    """One landing zone of observations.

    ``max_lateness_ns`` bounds arrival after event time; ``max_silence_ns`` is the longest that a healthy
    source may have nothing to report: for a telescope, a day and clouds in the night.
    """

    name: str
    description: str
    max_lateness_ns: int
    max_silence_ns: int
    replayable: str
    ordering: str
    delivery: str


OBSERVATION_FEEDS = (
    Feed(
        "radar",
        "Frames of radars, as received by UDP.",
        SECOND_NS // 10,
        600 * SECOND_NS,
        "no",
        "none",
        "at most once",
    ),
    Feed(
        "optical",
        "Records of telescopes, as polled from their archive.",
        30 * SECOND_NS,
        36 * HOUR_NS,
        "last 24 h",
        "by time",
        "re-pollable",
    ),
    Feed(
        "isl",
        "Beacons over inter-satellite links, as received by TCP.",
        10 * SECOND_NS,
        600 * SECOND_NS,
        "no",
        "per satellite",
        "at least once",
    ),
)
"""The feeds of the kinds of sensor, by which windows and watermarks are counted."""

TRACKING_FEED = Feed(
    "tracking",
    "Tracking data messages (CCSDS 503.0, TDM) of partners' stations, in KVN or XML.",
    DAY_NS,
    36 * HOUR_NS,
    "yes",
    "none",
    "at least once",
)
"""Files of observations of radars and telescopes: late by nature, so most come after their window is closed."""
TELEMETRY_FEED = "telemetry"
"""The landing zone of telemetry frames, which are no observations."""
LANDING_FEEDS = (*OBSERVATION_FEEDS, TRACKING_FEED)
