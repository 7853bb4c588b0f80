"""Assessing approaches: best states carried to the refined TCA, geometry, risk. Arrow in, Arrow out, no Spark.

The columns and what they mean are those of ``tables.Assessment``.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.best_states import BestStates, IntArray, Tracks
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.slow_passes import slow_tca_ns, stay_s
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import lower_triangles
from sda_platform.lake.correction_log import fact_schema
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.probability import object_type, risk_level
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.encounter import relative_states, rotating_frame_states
from sda_platform.orbits.screening.volumes import Volumes, by_volume

# Each step of the refinement leaves the square of its error: from a second to nanoseconds in three.
_REFINEMENTS = 3

ASSESSED_SCHEMA = fact_schema(CONJUNCTION_ASSESSMENTS)
Kernel = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Assesses the candidates of its batches, in the columns of ASSESSED_SCHEMA."""


def assessor(
    catalogue: Catalogue, tracks: Tracks, ephemerides: OperatorEphemerides, volumes: Volumes, sizes: ObjectSizes
) -> Kernel:
    """The function that assesses candidates by these states, volumes and sizes."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            yield from assess_candidates(rows, catalogue, tracks, ephemerides, volumes, sizes).to_batches()

    return run


def assess_candidates(
    candidates: pa.Table,
    catalogue: Catalogue,
    tracks: Tracks,
    ephemerides: OperatorEphemerides,
    volumes: Volumes,
    sizes: ObjectSizes,
) -> pa.Table:
    """Assess candidates by what is known of their objects; those of objects that left the catalogue are left out.

    ``volumes`` are those that they were screened in, ``sizes`` give the hard-body radii.
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
    kinds = [[object_type(name) for name in side] for side in names]
    ids = [rows.column(f"norad_id_{number}").to_pylist() for number in (1, 2)]
    radii, size_sources = zip(*(sizes.of(*side) for side in zip(ids, names, strict=True)), strict=True)
    radius_m = np.sum(radii, axis=0)
    best = best_probabilities(Encounters(r1, v1, c1, r2, v2, c2, radius_m / 1000))
    plane = best.two_dimensional
    columns = [
        rows.column("event_id"),
        rows.column("norad_id_1"),
        rows.column("norad_id_2"),
        tca_ns,
        relative.miss_distance_km,
        relative.relative_speed_km_s,
        *names,
        *(relative.position_rtn_km[:, axis] for axis in range(3)),
        *(relative.velocity_rtn_km_s[:, axis] for axis in range(3)),
        in_volume_s,
        plane.mahalanobis_distance,
        best.probability,
        best.method,
        best.standard_error,
        plane.probability,
        best.valid_2d,
        [",".join(flags) for flags in best.flags],
        plane.maximum_probability,
        plane.maximum_sigma_scale,
        radius_m,
        *radii,
        *size_sources,
        *kinds,
        ~(sides[0].has_covariance & sides[1].has_covariance),
        risk_level(best.probability_for_risk).tolist(),
        *(side.source for side in sides),
        *([track or None for track in side.track_id.tolist()] for side in sides),
        *([at_ns or None for at_ns in side.manoeuvre_ns.tolist()] for side in sides),
        *(side.ephemeris_id for side in sides),
        *([row.tolist() for row in part] for part in (np.hstack([r1, v1]), lower_triangles(c1))),
        *([row.tolist() for row in part] for part in (np.hstack([r2, v2]), lower_triangles(c2))),
    ]
    fields = zip(columns, ASSESSED_SCHEMA, strict=True)
    cast = [
        c.cast(f.type) if isinstance(c, pa.ChunkedArray) else pa.array(c, f.type, from_pandas=True) for c, f in fields
    ]
    return pa.Table.from_arrays(cast, schema=ASSESSED_SCHEMA)


def _side(
    rows: pa.Table, number: int, catalogue: Catalogue, tracks: Tracks, ephemerides: OperatorEphemerides
) -> BestStates:
    objects, tca_ns = (rows.column(name).to_numpy() for name in (f"norad_id_{number}", "tca_time_ns"))
    return BestStates.of(objects, tca_ns, catalogue, tracks, ephemerides)


def _refined_tca(sides: tuple[BestStates, BestStates], tca_ns: IntArray) -> IntArray:
    """TCA of the deviated trajectories, from the candidate's: Newton on r·v = 0; slow ones along their paths."""
    (_, v1, _), (_, v2, _) = (side.at(tca_ns) for side in sides)
    slow = np.flatnonzero(np.linalg.norm(v2 - v1, axis=-1) < SLOWEST_EVENT_KM_S)
    followed_ns = [slow_tca_ns(sides, row, int(tca_ns[row])) for row in slow.tolist()]
    for _ in range(_REFINEMENTS):
        (r1, v1, _), (r2, v2, _) = (side.at(tca_ns) for side in sides)
        dr, dv = r2 - r1, v2 - v1
        step_s = -np.einsum("ni,ni->n", dr, dv) / np.einsum("ni,ni->n", dv, dv)
        tca_ns = tca_ns + np.rint(np.nan_to_num(step_s) * NANOSECONDS_PER_SECOND).astype(np.int64)
    tca_ns[slow] = followed_ns
    # Beyond the border to the next set, or of the span of an ephemeris, the path is another.
    for side in sides:
        tca_ns = side.within_spans(tca_ns)
    return sides[0].catalogue.within_terms((sides[0].index, sides[1].index), tca_ns)
