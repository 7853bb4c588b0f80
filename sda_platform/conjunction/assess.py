"""Assessing approaches: best states carried to the refined TCA, geometry, risk. Arrow in, Arrow out, no Spark.

The columns and what they mean are those of ``tables.Assessment``.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from sda_platform.arrays import IntArray
from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.best_states import BestStates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.slow_passes import slow_tca_ns, stay_s
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.conjunction.tracked_states import Tracks
from sda_platform.formats.markings import MARKS, UNMARKED
from sda_platform.fusion.tables import lower_triangles
from sda_platform.lake.correction_log import fact_schema
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.levels import risk_level
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.encounter import relative_states, rotating_frame_states
from sda_platform.orbits.screening.volumes import Volumes, by_volume
from sda_platform.units import SECOND_NS

# Each step of the refinement leaves the square of its error: from a second to nanoseconds in three.
_REFINEMENTS = 3

# In the order of the axes of relative states.
_AXES = ("radial", "in_track", "cross_track")
# What the name of an object's column has after its number.
_UNITS = {"radius": "_m", "manoeuvre_time": "_ns"}

ASSESSED_SCHEMA = fact_schema(CONJUNCTION_ASSESSMENTS)


def assess_candidates(
    candidates: pa.Table,
    catalogue: Catalogue,
    tracks: Tracks,
    ephemerides: OperatorEphemerides,
    volumes: Volumes,
    sizes: ObjectSizes,
    *,
    keeps_markings: bool = True,
) -> pa.Table:
    """Assess candidates by what is known of their objects; skip objects that left the catalogue.

    ``volumes`` are those that they were screened in, ``sizes`` give the hard-body radii. Without ``keeps_markings`` the
    marking of the states is not known.
    """
    known = np.isin(candidates.column("norad_id_1").to_numpy(), catalogue.norad_id)
    known &= np.isin(candidates.column("norad_id_2").to_numpy(), catalogue.norad_id)
    rows = candidates.filter(pa.array(known))
    if not rows.num_rows:
        return ASSESSED_SCHEMA.empty_table()
    sides = (_side(rows, 1, catalogue, tracks, ephemerides), _side(rows, 2, catalogue, tracks, ephemerides))
    tca_ns = _refined_tca(sides, rows.column("tca_time_ns").to_numpy())
    (r1, v1, c1), (r2, v2, c2) = (side.at(tca_ns) for side in sides)
    relative = relative_states(r1, v1, r2, v2)
    in_volume_s = np.full(rows.num_rows, np.nan)
    for volume, chosen in by_volume(catalogue.propagator.elements.take(sides[0].index), volumes):
        in_volume_s[chosen] = volume.time_inside_s(
            *rotating_frame_states(r1[chosen], v1[chosen], r2[chosen], v2[chosen])
        )
        for row in chosen[relative.relative_speed_km_s[chosen] < SLOWEST_EVENT_KM_S].tolist():
            in_volume_s[row] = stay_s(sides, row, int(tca_ns[row]), volume)
    names = [[catalogue.object_names[i] for i in side.index] for side in sides]
    ids = [rows.column(f"norad_id_{number}").to_pylist() for number in (1, 2)]
    kinds = [[sizes.kind(*each) for each in zip(*side, strict=True)] for side in zip(ids, names, strict=True)]
    radii, size_sources = zip(*(sizes.of(*side) for side in zip(ids, names, strict=True)), strict=True)
    radius_m = np.sum(radii, axis=0)
    tails = sides[0].tails(tca_ns, r1, v1), sides[1].tails(tca_ns, r2, v2)
    best = best_probabilities(Encounters(r1, v1, c1, r2, v2, c2, radius_m / 1000, tails=tails))
    plane = best.two_dimensional
    columns: dict[str, Any] = {
        **{name: rows.column(name) for name in ("event_id", "norad_id_1", "norad_id_2")},
        "tca_time_ns": tca_ns,
        "miss_distance_km": relative.miss_distance_km,
        "relative_speed_km_s": relative.relative_speed_km_s,
        **{f"{axis}_miss_km": relative.position_rtn_km[:, n] for n, axis in enumerate(_AXES)},
        **{f"relative_velocity_{axis}_km_s": relative.velocity_rtn_km_s[:, n] for n, axis in enumerate(_AXES)},
        "time_in_volume_s": in_volume_s,
        "mahalanobis_distance": plane.mahalanobis_distance,
        "collision_probability": best.probability,
        "probability_method": best.method,
        "probability_standard_error": best.standard_error,
        "probability_2d": plane.probability,
        "is_2d_valid": best.valid_2d,
        "risk_flags": [",".join((*flags, *more)) for flags, more in zip(best.flags, _findings(sides), strict=True)],
        "maximum_probability": plane.maximum_probability,
        "maximum_sigma_scale": plane.maximum_sigma_scale,
        "hard_body_radius_m": radius_m,
        "is_screening_only": ~(sides[0].has_covariance & sides[1].has_covariance),
        "risk": risk_level(best.probability_for_risk).tolist(),
    }
    unmarked = [UNMARKED] * rows.num_rows
    states = (np.hstack([r1, v1]), lower_triangles(c1)), (np.hstack([r2, v2]), lower_triangles(c2))
    for number, side in enumerate(sides):
        of_object = {
            "object_name": names[number],
            "radius": radii[number],
            "radius_source": size_sources[number],
            "object_type": kinds[number],
            "state_source": side.source,
            "track_id": [track or None for track in side.track_id.tolist()],
            "manoeuvre_time": [at_ns or None for at_ns in side.manoeuvre_ns.tolist()],
            "ephemeris_id": side.ephemeris_id,
            **dict(zip(MARKS, zip(*(side.markings if keeps_markings else unmarked), strict=True), strict=True)),
            "state": states[number][0].tolist(),
            "covariance": states[number][1].tolist(),
            "degrees_of_freedom": np.where(np.isinf(tails[number].degrees), np.nan, tails[number].degrees),
        }
        columns |= {f"{name}_{number + 1}{_UNITS.get(name, '')}": column for name, column in of_object.items()}
    return pa.table([_typed(columns[field.name], field.type) for field in ASSESSED_SCHEMA], ASSESSED_SCHEMA)


def _typed(column: Any, of_type: pa.DataType) -> pa.Array | pa.ChunkedArray:
    is_arrow = isinstance(column, pa.ChunkedArray)
    return column.cast(of_type) if is_arrow else pa.array(column, of_type, from_pandas=True)


def _findings(sides: tuple[BestStates, BestStates]) -> list[list[str]]:
    """Return the covariances of each event that were refused, and why its sources of states were chosen.

    Each name ends with the number of the object.
    """
    names = [(texts, number) for number, side in enumerate(sides, 1) for texts in (side.refused, side.choice)]
    return [[f"{texts[row]}_{number}" for texts, number in names if texts[row]] for row in range(len(sides[0].index))]


def _side(
    rows: pa.Table, number: int, catalogue: Catalogue, tracks: Tracks, ephemerides: OperatorEphemerides
) -> BestStates:
    objects, tca_ns = (rows.column(name).to_numpy() for name in (f"norad_id_{number}", "tca_time_ns"))
    return BestStates.of(objects, tca_ns, catalogue, tracks, ephemerides)


def _refined_tca(sides: tuple[BestStates, BestStates], tca_ns: IntArray) -> IntArray:
    """TCA of the deviated trajectories, from the candidate's: Newton on r·v = 0; slow ones along their paths."""
    (_, v1), (_, v2) = (side.path(tca_ns) for side in sides)
    slow = np.flatnonzero(np.linalg.norm(v2 - v1, axis=-1) < SLOWEST_EVENT_KM_S)
    followed_ns = [slow_tca_ns(sides, row, int(tca_ns[row])) for row in slow.tolist()]
    for _ in range(_REFINEMENTS):
        (r1, v1), (r2, v2) = (side.path(tca_ns) for side in sides)
        dr, dv = r2 - r1, v2 - v1
        step_s = -np.einsum("ni,ni->n", dr, dv) / np.einsum("ni,ni->n", dv, dv)
        tca_ns = tca_ns + np.rint(np.nan_to_num(step_s) * SECOND_NS).astype(np.int64)
    tca_ns[slow] = followed_ns
    # Beyond the border to the next set, or of the span of an ephemeris, the path is another.
    for side in sides:
        tca_ns = side.within_spans(tca_ns)
    return sides[0].catalogue.within_terms((sides[0].index, sides[1].index), tca_ns)
