"""A platform with a history: a catalogue and its correction, what radars saw, what links told later, and too late."""

import re
from functools import cache
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_NS
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.scenes import catalogue
from sda_platform_tests.support.segments import START_NS, after, catalogue_of, land
from sda_platform_tests.support.simulated_chain import FLEET, events, simulated

HORIZON_H = 0.6
CATALOGUE = catalogue_of({*FLEET, *(n for e in events() if e[2] < after(HORIZON_H * 3600) for n in e[:2])})
# The same orbits, each with an epoch some microseconds later: newer, so that they replace the first.
CORRECTED = re.sub(rb"(T[\d:]{8}\.\d{5})\d", rb"\g<1>9", CATALOGUE)
# What meets Hubble head-on, so far above it that a track of three windows by radar cannot rule it out, and one that
# Hubble's link has told of can.
ONCOMING_ID, MET_ID, MEETING_NS, ABOVE_KM = 99_001, 20_580, after(1800), 0.97


@cache
def oncoming(meeting_ns: int = MEETING_NS) -> bytes:
    """Its element sets of a week, as somebody publishes them: they agree, so that its errors are small."""
    row = np.flatnonzero(catalogue().elements.norad_id == MET_ID)
    _, r, v = catalogue().at(row, [meeting_ns])
    newest = mean_elements(r * (1 + ABOVE_KM / np.linalg.norm(r)), -v, meeting_ns)
    earlier_ns = meeting_ns - DAY_NS * np.arange(1, 8)
    _, r, v = Propagator(newest).at(np.zeros(len(earlier_ns), dtype=np.int64), earlier_ns)
    names = {"norad_id": ONCOMING_ID, "object_name": "ONCOMING", "international_designator": None}
    sets = [newest, *(mean_elements(r[n, None], v[n, None], then) for n, then in enumerate(earlier_ns.tolist()))]
    fields = ElementSets.__dataclass_fields__
    return encode_omm_csv(
        [ElementSet(**{name: getattr(each, name)[0].item() for name in fields} | names) for each in sets]
    )


def platform_with_history(home: Path, spark: SparkSession) -> Platform:
    """Five runs of pools, below ``home``."""
    platform = Platform(home, spark, START_NS, ScreeningResource(horizon_h=HORIZON_H))
    links = [s for s in simulated() if s.feed == "isl"]
    land(platform.zone("elements"), "catalogue.csv", CATALOGUE)
    land(platform.zone("elements"), "oncoming.csv", oncoming())
    platform.run("catalog_to_alerts")
    platform.land(s for s in simulated() if s.feed == "radar")
    land(platform.zone("radar"), "torn", b"torn", sha256="0" * 64)
    platform.at(after(80))
    platform.run("observations_to_alerts")
    land(platform.zone("messages"), "theirs.kvn", messages_of([Told()]) + b"CCSDS_CDM_VERS = 1.0\n", seconds=90)
    land(platform.zone("elements"), "corrected.csv", CORRECTED, seconds=90)
    platform.run("catalog_to_alerts")
    # What links told of two windows corrects them and closes the first: what comes for that one then is too late.
    platform.land(s for s in links[1:] if s.available_time_ns <= after(62))
    platform.at(after(200))
    platform.run("observations_to_alerts")
    platform.land(s for s in links if s is links[0] or s.available_time_ns > after(62))
    platform.at(after(210))
    platform.run("observations_to_alerts")
    return platform
