"""Do dead letters grow? A few a day are noise; a jump from one source is a changed format or its fault.

A kind grows when each of the last five minutes had ten times as many letters as a usual minute of it. Usual is
the hour before, or as much of it as the platform has existed; in its first ten minutes nothing is usual yet. Letters
count in the minute in which their record was received, so an outage that is caught up does not look like a jump; those
that were refused again after reprocessing do not count.
"""

from collections import Counter
from dataclasses import dataclass

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.dead_letters.rejected import DEAD_LETTER_VERSION
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.dispositions import RECORD_KINDS
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.setting_sections import GrowthSettings
from sda_platform.units import MINUTE_NS

SUSTAINED_MIN = 5
"""How long the rate must hold, minutes of mission time."""
BASELINE_MIN = 60
"""The time before, whose mean rate is the usual one, minutes; less on a platform that is younger."""
_COLUMNS = ["error_kind", "feed", "source_id", "received_time_ns", "retry_count", "schema_version"]


class GrowthResource(GrowthSettings, dg.ConfigurableResource["GrowthResource"]):
    """From when on dead letters are too many; a baseline below ``floor_per_min`` counts as that."""

    def factor_of(self, kind: str) -> float:
        """Times the usual rate from which ``kind`` grows."""
        return self.factor_by_kind.get(kind, self.factor)


@dataclass(frozen=True)
class Growth:
    """A kind that grows: how many letters of it came in the last minutes, and mostly from whom."""

    kind: str
    source: str
    letters: int
    per_min: float
    usual_per_min: float

    def __str__(self) -> str:
        hypothesis = RECORD_KINDS[self.kind].hypothesis if self.kind in RECORD_KINDS else "An unknown kind."
        return (
            f"{self.kind} mostly from {self.source}: {self.per_min:.0f} dead letters a minute against "
            f"{self.usual_per_min:.2g} as usual. {hypothesis} See docs/how-to/dead-letters.md, {self.kind}"
        )


def recent_letters(lake: Lake, now_ns: int) -> pa.Table:
    """Return the dead letters of records that came within the time that `growing` judges at mission time ``now_ns``."""
    since_ns = now_ns - (SUSTAINED_MIN + BASELINE_MIN) * MINUTE_NS
    return lake.log(DEAD_LETTERS).rows(_COLUMNS, ds.field("received_time_ns") > since_ns)


def growing(lake: Lake, letters: pa.Table, now_ns: int, rule: GrowthResource) -> list[Growth]:
    """Return the kinds of ``letters`` that grow at mission time ``now_ns``, the one with most letters first."""
    usual_min = min(_recorded_min(lake, letters, now_ns) - SUSTAINED_MIN, BASELINE_MIN)
    if usual_min < SUSTAINED_MIN:
        return []
    first = letters.filter(pc.equal(pc.coalesce(letters["retry_count"], pa.scalar(0, pa.int64())), 0))
    minutes: dict[str, Counter[int]] = {}
    sources: dict[str, Counter[str]] = {}
    for row in first.to_pylist():
        age_min = (now_ns - row["received_time_ns"]) // MINUTE_NS
        kind = row["error_kind"]
        if 0 <= age_min < SUSTAINED_MIN + BASELINE_MIN:
            minutes.setdefault(kind, Counter())[age_min] += 1
        if 0 <= age_min < SUSTAINED_MIN:
            sources.setdefault(kind, Counter())[row["source_id"] or row["feed"]] += 1
    found = [_growth(kind, counts, sources.get(kind, Counter()), usual_min, rule) for kind, counts in minutes.items()]
    return sorted((growth for growth in found if growth), key=lambda growth: (-growth.letters, growth.kind))


def _recorded_min(lake: Lake, letters: pa.Table, now_ns: int) -> int:
    """Begun minutes since dead letters are recorded: since the table was made, or longer where it was made again."""
    delta = lake.log(DEAD_LETTERS).open()
    created_ms = delta.metadata().created_time if delta else None  # Delta leaves it out where a writer did
    made_ns = now_ns if created_ms is None else lake.clock.now_ns(created_ms * 1_000_000)
    oldest_ns = pc.min(letters["received_time_ns"]).as_py() or now_ns
    return (now_ns - min(made_ns, oldest_ns)) // MINUTE_NS + 1


def _growth(
    kind: str, minutes: Counter[int], sources: Counter[str], usual_min: int, rule: GrowthResource
) -> Growth | None:
    recent = [minutes[age] for age in range(SUSTAINED_MIN)]
    before = sum(count for age, count in minutes.items() if age >= SUSTAINED_MIN)
    usual = max(before / usual_min, rule.floor_per_min)
    if min(recent) < rule.factor_of(kind) * usual:
        return None
    return Growth(kind, sources.most_common(1)[0][0], sum(recent), sum(recent) / SUSTAINED_MIN, usual)


@dg.asset_check(
    asset=DEAD_LETTERS.name,
    description="No kind of dead letter arrives much more often than usual.",
    op_tags=AFTER_ALERTS,
)
def no_growth(lake: LakeResource, growth: GrowthResource) -> dg.AssetCheckResult:
    """The rate of each kind against its own last hour, by mission time; names the dominant kind and source."""
    store = lake.open()
    now_ns = store.clock.now_ns()
    letters = recent_letters(store, now_ns)
    found = growing(store, letters, now_ns, growth)
    unknown = pc.sum(pc.greater(letters["schema_version"], DEAD_LETTER_VERSION)).as_py() or 0
    return dg.AssetCheckResult(
        passed=not found and not unknown,
        severity=dg.AssetCheckSeverity.WARN,
        description=outcome_text(
            "; ".join(map(str, found))
            or (f"{unknown} letters were written by a newer platform and are not read here" if unknown else "")
        ),
        metadata={
            "letters_reviewed": letters.num_rows,
            "letters_of_unknown_version": unknown,
            **({"kind": found[0].kind, "source": found[0].source} if found else {}),
        },
    )
