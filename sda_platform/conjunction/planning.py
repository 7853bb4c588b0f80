"""What a screening covers: which objects, against which, over which span."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.tables import SCREENED_FROM, SCREENED_UPTO, TRACK_REACH_NS
from sda_platform.lake.manifest import CommitManifest, Settings, TableSnapshot
from sda_platform.lake.planning import Plan, snapshot_of
from sda_platform.setting_sections import ScreeningSettings

# Beyond this part of the catalogue, screening the changed objects one by one costs more than screening all.
_FULL_FROM_SHARE = 0.2
SETTINGS: Final = "screening"
"""Under which name a commit records the settings of the screening."""
_OF_THE_PACE = {"refresh_h", "objects_per_task", "at_once", "keeps_markings"}


@dataclass(frozen=True)
class Screening:
    """A screening to be done: ``changed`` objects against the fleet, or, where it is None, all of them."""

    start_ns: int
    end_ns: int
    changed: frozenset[int] | None

    @property
    def is_full(self) -> bool:
        """Whether every object is screened."""
        return self.changed is None


def decide(
    plan: Plan,
    changed: Set[int],
    catalogue_size: int,
    *,
    horizon_ns: int,
    refresh_ns: int,
    manoeuvred: Set[int] = frozenset(),
) -> Screening | None:
    """Return the screening that ``plan`` requires; None if nothing changed and the last full screening is recent.

    Other settings than those of the last commit, the fleet's file among them, are a full screening at once.
    ``manoeuvred`` objects changed without a new set: their tracks show it. They alone are screened as far ahead as
    tracks are used.
    """
    marks = plan.previous.watermarks if plan.previous else {}
    last_full = marks.get(SCREENED_FROM)
    is_old = last_full is None or plan.as_of_ns - last_full >= min(refresh_ns, horizon_ns)
    is_due = is_old or settings_changed(plan.previous, plan.settings)
    if not catalogue_size or (plan.is_empty and not is_due and not manoeuvred):
        return None
    if is_due or len(changed) > _FULL_FROM_SHARE * catalogue_size:
        return Screening(plan.as_of_ns, plan.as_of_ns + horizon_ns, None)
    if not changed and manoeuvred:
        end_ns = min(marks[SCREENED_UPTO], plan.as_of_ns + TRACK_REACH_NS)
        return Screening(plan.as_of_ns, end_ns, frozenset(manoeuvred))
    return Screening(plan.as_of_ns, marks[SCREENED_UPTO], frozenset(changed | manoeuvred))


def settings_changed(previous: CommitManifest | None, settings: Settings | None) -> bool:
    """Return whether a commit under these recorded ``settings`` screens otherwise than ``previous`` did.

    A setting that is newer than the commit had its default then, so an upgrade alone changes nothing.
    """
    then, now = (previous.settings if previous else None) or {}, settings or {}
    if SETTINGS not in then or SETTINGS not in now:
        return False
    defaults = {name: field.default for name, field in ScreeningSettings.model_fields.items()}
    before, after = {**defaults, **then[SETTINGS]}, {**defaults, **now[SETTINGS]}
    return any(before.get(name) != after.get(name) for name in (before.keys() | after.keys()) - _OF_THE_PACE)


def sets_read(plan: Plan) -> TableSnapshot:
    """Return the snapshot of `element_sets` that ``plan`` reads."""
    return snapshot_of(plan, ELEMENT_SETS)


def marks_after(plan: Plan, screening: Screening) -> dict[str, int]:
    """Return the watermarks of the screened span for the manifest."""
    if screening.is_full:
        return {SCREENED_FROM: screening.start_ns, SCREENED_UPTO: screening.end_ns}
    return dict(plan.previous.watermarks) if plan.previous else {}
