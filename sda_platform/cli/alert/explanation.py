"""`sda alert explain`: what was known then and what is known now, as text."""

from collections.abc import Iterator

from sda_platform.cli.listing import cell
from sda_platform.formats.markings import MARKS
from sda_platform.history.explanation import Explanation, Known

_SHOWN = {
    "alert": ("risk", "rule", "collision_probability", "miss_distance_km", "tca_time_ns", "sequence",
              *MARKS),
    "assessment": ("collision_probability", "probability_method", "miss_distance_km", "tca_time_ns", "state_source_1",
                   "state_source_2", *(f"{name}_{n}" for name in MARKS for n in (1, 2))),
    "candidate": ("miss_distance_km", "elements_epoch_1_ns", "elements_epoch_2_ns"),
    "element set": ("epoch_time_ns", "originator", "segment_name"),
    "ephemeris": ("originator", "created_time_ns", "usable_from_ns", "usable_until_ns", "covariance_source",
                  "segment_name"),
    "message": ("originator", "created_time_ns", "stated_probability", "miss_distance_km", "tca_time_ns"),
    "track": ("state", "epoch_time_ns", "position_sigma_m", "manoeuvre_time_ns"),
}  # fmt: skip


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Write what was known then and now, fact by fact, and the versions that were read."""
    yield f"alert {found.alert_id}: then is {found.then.moment}"
    for fact in found.facts:
        yield f"{fact.what}"
        yield from (f"  {line}" for line in _fact_lines(fact))
    yield f"versions read then: {found.then}"


def _fact_lines(fact: Known) -> Iterator[str]:
    if fact.then is None and fact.now is None:
        yield "none, then and now"
        return
    shown = next(names for what, names in _SHOWN.items() if fact.what.startswith(what))
    for when, row in (("then", fact.then), ("now ", fact.now)):
        if when == "now " and row is not None and fact.then is not None and not fact.changed:
            yield "now   the same"
        else:
            values = (
                ", ".join(f"{n.removesuffix('_ns')} {cell(n, row.get(n)) or 'none'}" for n in shown) if row else "none"
            )
            yield f"{when}  {values}"
