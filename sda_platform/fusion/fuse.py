"""Fuses one window: association of its observations, and one fit per object. Arrow in, Arrow out, no Spark."""

import uuid
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.formats.markings import MARKS, Marking, of_groups
from sda_platform.fusion.tables import FUSED_TRACKS, STATE_AND_COVARIANCE, lower_triangles
from sda_platform.fusion.watermarks import term_of
from sda_platform.lake.arrow import arrays
from sda_platform.lake.correction_log import content
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import REPORTED_COLUMNS, ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.association import Association, associate
from sda_platform.orbits.tracking.estimation import StateFits
from sda_platform.orbits.tracking.manoeuvred_objects import with_manoeuvred
from sda_platform.orbits.tracking.observer_halves import fit_halves
from sda_platform.orbits.tracking.progress import fuse_window
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases, corrected

OBSERVATION_COLUMNS = ("observation_id", "native_track_id", *REPORTED_COLUMNS)
"""The columns of `observations` that estimation reads."""
MARKED_OBSERVATION_COLUMNS = (*OBSERVATION_COLUMNS, *MARKS)
"""The same with what the products of estimation inherit."""
_FIT_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:fused-track:1")

_FACTS = {FUSED_TRACKS.key[0], *content(FUSED_TRACKS)}
TRACK_SCHEMA = pa.schema([field for field in FUSED_TRACKS.arrow_schema if field.name in _FACTS])


def window_fuser(
    propagator: Propagator,
    window_ns: int,
    biases: Mapping[int, TimeTagBiases] | None = None,
    sensors: SensorNetwork | None = None,
) -> Callable[[pa.Table], pa.Table]:
    """Return the function that fuses the observations of one window, in the columns of TRACK_SCHEMA.

    ``biases``: time-tag corrections to apply, by the start of the term (`time_bias.corrections`). ``sensors``: the
    network that made the observations; the shipped one if not given.
    """
    known = biases or {}

    def fuse(rows: pa.Table) -> pa.Table:
        start_ns = int(rows.column("window_start_ns")[0].as_py())
        offsets = known.get(term_of(start_ns, window_ns))
        ordered = in_order(rows)
        observations = ObservationArrays.from_columns(arrays(ordered), sensors)
        if offsets is not None:
            observations = corrected(observations, offsets)
        return _fuse(ordered, observations, propagator, start_ns, window_ns)

    return fuse


def in_order(rows: pa.Table) -> pa.Table:
    """Observations in canonical order, so that results do not depend on files, partitions or arrival."""
    return rows.sort_by([("sensor_time_ns", "ascending"), ("observation_id", "ascending")])


def associated(rows: pa.Table, observations: ObservationArrays, propagator: Propagator) -> Association:
    """Return the association of each observation; ``rows`` contain the sensors' own track names."""
    return associate(observations, propagator, tracks=track_names(rows))


def track_names(rows: pa.Table) -> TextArray:
    """Return the sensors' own track names, empty where there is none."""
    return np.asarray(pc.fill_null(rows["native_track_id"], "").to_pylist(), dtype=np.str_)


def _fuse(
    rows: pa.Table, observations: ObservationArrays, propagator: Propagator, start_ns: int, window_ns: int
) -> pa.Table:
    ids = np.asarray(rows.column("observation_id").to_pylist())
    stamped_ns = rows.column("sensor_time_ns").to_numpy()
    middle_ns = start_ns + window_ns // 2
    within = fuse_window(observations, track_names(rows), ids, stamped_ns, propagator, middle_ns)
    found = with_manoeuvred(observations, within, propagator, middle_ns)
    if not len(found.objects):
        return TRACK_SCHEMA.empty_table()
    used = found.fits.used
    members = _members(ids[used], found.group[used], len(found.objects))
    markings = of_groups(rows.filter(pa.array(used)), found.group[used], len(found.objects))
    halves = _half_fits(len(found.objects), *fit_halves(observations, found, propagator, middle_ns))
    elements = propagator.elements.take(found.objects)
    return _fits(found.fits, elements, start_ns, middle_ns, members, halves, markings)


def _half_fits(count: int, objects: IntArray, states: FloatArray, covariances: FloatArray) -> list[FloatArray | None]:
    """Return the column `half_fits` of ``count`` objects; ``objects`` (h,) have states (h, 2, 6), covariances (h, 2, 6,
    6).
    """
    lower = lower_triangles(covariances.reshape(-1, 6, 6)).reshape(len(objects), 2, 21)
    column: list[FloatArray | None] = [None] * count
    for row, terms in zip(objects.tolist(), np.concatenate([states, lower], axis=2), strict=True):
        column[row] = terms.ravel()
    return column


def _members(ids: npt.NDArray[np.str_], group: npt.NDArray[np.int64], groups: int) -> list[list[str]]:
    """Return the ids of each group, sorted."""
    order = np.lexsort((ids, group))
    cuts = np.searchsorted(group[order], np.arange(1, groups))
    return [part.tolist() for part in np.split(ids[order], cuts)]


def _fits(
    fits: StateFits,
    elements: ElementSets,
    start_ns: int,
    middle_ns: int,
    members: list[list[str]],
    half_fits: list[FloatArray | None],
    markings: list[Marking],
) -> pa.Table:
    basis = rtn_basis(fits.predicted_r_teme_km, fits.predicted_v_teme_km_s)
    predicted = np.concatenate([fits.predicted_r_teme_km, fits.predicted_v_teme_km_s], axis=1)
    norad_id = elements.norad_id
    offset_km = np.einsum("gij,gj->gi", basis, fits.r_teme_km - fits.predicted_r_teme_km)
    state = np.concatenate([fits.r_teme_km, fits.v_teme_km_s], axis=1)
    columns = {
        "fit_id": [str(uuid.uuid5(_FIT_NAMESPACE, f"{n}/{start_ns}")) for n in norad_id.tolist()],
        "norad_id": norad_id,
        "window_start_ns": np.full(len(norad_id), start_ns),
        "epoch_time_ns": np.full(len(norad_id), middle_ns),
        **dict(zip(STATE_AND_COVARIANCE, [*state.T, lower_triangles(fits.covariance_teme).tolist()], strict=True)),
        "predicted_state": predicted.tolist(),
        "predicted_covariance": lower_triangles(fits.prior_covariance_teme).tolist(),
        "elements_epoch_ns": elements.epoch_time_ns,
        **{f"offset_{axis}_km": offset_km[:, n] for n, axis in enumerate(("radial", "in_track", "cross_track"))},
        "chi_square": fits.chi_square,
        "degrees_of_freedom": fits.degrees_of_freedom,
        "radar_count": fits.radar_count,
        "optical_count": fits.optical_count,
        "isl_count": fits.isl_count,
        "rejected_count": fits.outliers_rejected,
        "observation_ids": members,
        "half_fits": half_fits,
        **dict(zip(MARKS, zip(*markings, strict=True), strict=True)),
    }
    is_accepted = fits.converged & np.array([len(m) > 0 for m in members])
    fields = [pa.array(columns[field.name], field.type) for field in TRACK_SCHEMA]
    return pa.Table.from_arrays(fields, schema=TRACK_SCHEMA).filter(pa.array(is_accepted))
