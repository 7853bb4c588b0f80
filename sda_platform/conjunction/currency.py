"""How current a list of conjunctions is: the last full screening, its span, and the age of the element sets."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso, iso_to_second
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES, SCREENED_FROM, SCREENED_UPTO
from sda_platform.lake.lake import Lake
from sda_platform.units import SECOND_NS

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86_400.0


def screened_span(lake: Lake) -> tuple[int, int] | None:
    """Return begin and end, ns, of the span that the newest full screening covers; None: nothing was screened yet."""
    commit = lake.log(CONJUNCTION_CANDIDATES).head().commit
    marks = commit.manifest.watermarks if commit else {}
    return (marks[SCREENED_FROM], marks[SCREENED_UPTO]) if {SCREENED_FROM, SCREENED_UPTO} <= marks.keys() else None


@dataclass(frozen=True)
class Currency:
    """What the conjunctions of a lake rest on at ``now_ns``; None: nothing was screened yet, or there is no catalogue.

    Attributes:
        screened_ns: when every object was screened last.
        screened_upto_ns: the end of the span that is screened.
        objects: number of objects in the catalogue.
        median_age_s, greatest_age_s: age of their element sets, seconds since the epoch.
    """

    now_ns: int
    screened_ns: int | None
    screened_upto_ns: int | None
    objects: int
    median_age_s: float | None
    greatest_age_s: float | None

    @classmethod
    def of(cls, lake: Lake) -> Self:
        """Determine how current the alerts of ``lake`` are, by its clock."""
        now_ns, catalogue = lake.clock.now_ns(), lake.log(ORBITAL_CATALOG)
        epochs_ns = np.array([] if catalogue.version() < 0 else catalogue.rows(["epoch_time_ns"]).column(0), np.int64)
        ages_s = (now_ns - epochs_ns) / SECOND_NS
        known = (float(np.median(ages_s)), float(ages_s.max())) if len(ages_s) else (None, None)
        screened_ns, upto_ns = screened_span(lake) or (None, None)
        return cls(now_ns, screened_ns, upto_ns, len(ages_s), *known)

    @property
    def screened(self) -> str:
        """When all objects were screened, and up to when; empty: never."""
        if self.screened_ns is None or self.screened_upto_ns is None:
            return ""
        return f"{words_of((self.now_ns - self.screened_ns) / SECOND_NS)} ago, up to {iso(self.screened_upto_ns)[:16]}Z"

    @property
    def has_passed(self) -> bool:
        """Whether the screened span lies behind."""
        return self.screened_upto_ns is not None and self.screened_upto_ns <= self.now_ns

    def why_unassessed(self, tca_ns: int) -> str:
        """Say why an event at ``tca_ns`` that only received messages have is none of ours."""
        if self.screened_upto_ns is None:
            return "nothing was screened yet"
        return "beyond the screened span" if tca_ns > self.screened_upto_ns else "not found by our screening"

    @property
    def ages(self) -> str:
        """The ages of the element sets; empty without a catalogue."""
        if self.median_age_s is None or self.greatest_age_s is None:
            return ""
        return f"{words_of(self.median_age_s)} old in the median, {words_of(self.greatest_age_s)} at most"

    def __str__(self) -> str:
        passed = ", which has passed" if self.has_passed else ""
        screened = f"all objects screened {self.screened}{passed}" if self.screened else "nothing was screened yet"
        sets = f"element sets of {self.objects:,} objects, {self.ages}" if self.ages else "no object in the catalogue"
        return f"as of {iso_to_second(self.now_ns)}: {screened}; {sets}"


def words_of(seconds: float) -> str:
    """A span of time for people: 40 s, 12 min, 5.0 h, 3.2 d."""
    for unit, name, form in ((_DAY_S, "d", ".1f"), (_HOUR_S, "h", ".1f"), (_MINUTE_S, "min", ".0f")):
        if abs(seconds) >= unit:
            return f"{seconds / unit:{form}} {name}"
    return f"{seconds:.0f} s"
