"""Which objects should be observed, why, and by when an observation still helps.

Pure functions of the current rows of assessments, tracks and provisional elements, and of ``as_of``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sda_platform.conjunction.assessed_passes import assessed_passes
from sda_platform.fusion.tables import STATE_COLUMNS
from sda_platform.fusion.track_states import LOST as LOST_STATE
from sda_platform.fusion.track_states import NEW
from sda_platform.tasking.information import NEGLIGIBLE_GAIN, position_gain, shortest_pass
from sda_platform.tasking.tables import ANALYST, CONJUNCTION, LOST, MANOEUVRE, RESIDUAL, STALE
from sda_platform.units import HOUR_NS, SECOND_NS

ASSESSMENT_COLUMNS: Final = (
    "norad_id_1", "norad_id_2", "tca_time_ns", "risk", "maximum_probability", "hard_body_radius_m",
    "state_1", "covariance_1", "degrees_of_freedom_1", "state_2", "covariance_2", "degrees_of_freedom_2",
)  # fmt: skip
TRACK_COLUMNS: Final = (
    "norad_id", "state", "epoch_time_ns", "last_seen_ns", "windows", "position_sigma_m", "innovation",
    "innovation_size", "manoeuvre_time_ns", *STATE_COLUMNS,
)  # fmt: skip
CATALOGUE: Final = "catalogue"
"""Owner of what is observed for the catalogue itself."""

_NAMESPACE: Final = uuid.UUID("5f0a53c6-1cb6-5d1c-9c3a-0a0f7a1c2b11")
# A normalised squared innovation beyond this many times its degrees of freedom has a chance below 1e-6 (for 6).
_DOUBTFUL: Final = 7.0
_FOLLOWED_WINDOWS: Final = 10
_UNTRACKED_SIGMA_KM: Final = 1.0


@dataclass(frozen=True)
class DemandRules:
    """When something is worth observing."""

    decision_lead_ns: int = 2 * HOUR_NS
    """A conjunction's observation must be done so long before TCA, so that a manoeuvre can follow."""
    stale_after_ns: int = 12 * HOUR_NS
    upkeep_within_ns: int = 24 * HOUR_NS
    urgent_within_ns: int = 6 * HOUR_NS
    wanted_sigma_km: float = 0.1
    """A conjunction is observed until one sigma of its miss is at most this, along each axis of the encounter plane."""


def requests(
    assessments: pa.Table,
    tracks: pa.Table,
    provisional: pa.Table,
    owners: Mapping[int, str],
    known_since_ns: Mapping[str, int],
    as_of_ns: int,
    rules: DemandRules,
) -> list[dict[str, Any]]:
    """Return the rows of `observation_requests` that hold at ``as_of_ns``, without the columns of every correction log.

    ``assessments``: current ones with ASSESSMENT_COLUMNS; ``tracks`` with TRACK_COLUMNS; ``provisional`` with
    ``norad_id``. ``owners``: operators of protected objects. ``known_since_ns``: when current requests were first
    made.
    """
    found = [
        *_of_conjunctions(assessments, owners, as_of_ns, rules),
        *_of_tracks(tracks.to_pylist(), frozenset(provisional.column("norad_id").to_pylist()), as_of_ns, rules),
    ]
    for each in found:
        since_ns = known_since_ns.get(each["request_id"], as_of_ns)
        each["requested_time_ns"] = since_ns
        each["owner"] = owners.get(each["norad_id"], each.pop("owner", CATALOGUE))
        within_ns = each.pop("within_ns", None)
        if within_ns is not None:
            # A request that is needed after its deadline is made again, from the deadline on.
            each["deadline_time_ns"] = since_ns + ((as_of_ns - since_ns) // within_ns + 1) * within_ns
    return sorted(found, key=lambda each: str(each["request_id"]))


def request_id(reason: str, norad_id: int, event_id: str | None = None) -> str:
    """Compute the id of a request; the same demand at a later time has the same id."""
    return str(uuid.uuid5(_NAMESPACE, f"{reason}|{norad_id}|{event_id or ''}"))


def _of_conjunctions(
    assessments: pa.Table, owners: Mapping[int, str], as_of_ns: int, rules: DemandRules
) -> Iterable[dict[str, Any]]:
    rows = [
        row
        for row in assessments.to_pylist()
        if row["risk"] != "green" and row["tca_time_ns"] > as_of_ns and row["covariance_1"] and row["covariance_2"]
    ]
    if not rows:
        return
    # Expected in the middle of the time that is left.
    lead_s = np.array([(row["tca_time_ns"] - as_of_ns) / 2 / SECOND_NS for row in rows])
    encounters = assessed_passes(rows)
    for side, observed_first in enumerate((encounters, encounters.swapped())):
        after = shortest_pass(observed_first, lead_s, rules.wanted_sigma_km)
        expected = zip(rows, after.gain.tolist(), after.probability.tolist(), after.dwell_s.tolist(), strict=True)
        for row, gain, probability, dwell_s in expected:
            if not gain >= NEGLIGIBLE_GAIN:
                continue
            norad_id = row[f"norad_id_{side + 1}"]
            deadline_ns = row["tca_time_ns"] - rules.decision_lead_ns
            yield {
                "request_id": request_id(CONJUNCTION, norad_id, row["event_id"]),
                "norad_id": norad_id,
                "reason": CONJUNCTION,
                "priority_class": 0 if row["risk"] == "red" else 1,
                "owner": owners.get(row["norad_id_1"], CATALOGUE),
                "event_id": row["event_id"],
                # Later than the lead an observation still helps, until the encounter itself.
                "deadline_time_ns": deadline_ns if deadline_ns > as_of_ns else row["tca_time_ns"],
                "information_gain": round(gain, 2),
                "expected_probability": float(f"{probability:.2e}"),
                "dwell_s": dwell_s,
            }


def _of_tracks(
    tracks: Iterable[Mapping[str, Any]], provisional: frozenset[int], as_of_ns: int, rules: DemandRules
) -> Iterable[dict[str, Any]]:
    tracked = set()
    for track in tracks:
        tracked.add(track["norad_id"])
        reason = _why(track, provisional, as_of_ns, rules)
        if reason is not None:
            yield _upkeep(reason, track["norad_id"], track["position_sigma_m"] / 1e3, rules)
    for norad_id in sorted(provisional - tracked):
        yield _upkeep(ANALYST, norad_id, _UNTRACKED_SIGMA_KM, rules)


def _why(track: Mapping[str, Any], provisional: frozenset[int], as_of_ns: int, rules: DemandRules) -> str | None:
    if track["norad_id"] in provisional and track["windows"] < _FOLLOWED_WINDOWS:
        return ANALYST
    if track["manoeuvre_time_ns"] is not None:
        return MANOEUVRE
    if (track["innovation"] or 0.0) > _DOUBTFUL * max(track["innovation_size"], 1):
        return RESIDUAL
    if track["state"] == LOST_STATE:
        return LOST
    is_stale = track["state"] != NEW and as_of_ns - track["last_seen_ns"] > rules.stale_after_ns
    return STALE if is_stale else None


def _upkeep(reason: str, norad_id: int, sigma_km: float, rules: DemandRules) -> dict[str, Any]:
    is_urgent = reason in (ANALYST, MANOEUVRE, RESIDUAL)
    within_ns = rules.urgent_within_ns if is_urgent else rules.upkeep_within_ns
    return {
        "request_id": request_id(reason, norad_id),
        "norad_id": norad_id,
        "reason": reason,
        "priority_class": 1 if is_urgent else 2,
        "event_id": None,
        "within_ns": within_ns,
        "information_gain": round(float(position_gain(sigma_km)), 2),
        "expected_probability": None,
        "dwell_s": None,
    }
