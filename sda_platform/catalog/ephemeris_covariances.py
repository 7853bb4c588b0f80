"""Covariances of ephemerides in TEME: as a message states them in any frame, or assumed by the age of the path."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.tables import BY_DEFAULT, BY_MESSAGE
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.orbits.covariance import rtn_to_teme, tnw_to_teme
from sda_platform.orbits.earth_orientation import FRAMES, covariances_in_teme, frame_of
from sda_platform.orbits.element_errors import path_covariance_rtn
from sda_platform.orbits.ephemerides import Ephemeris, covariances_from_lower, states_at
from sda_platform.orbits.risk.validity import is_indefinite
from sda_platform.units import DAY_NS

OF_DATE: Final = ("TOD", "TEME")
_LARGEST_SIGMA_KM: Final = 1e3
_LARGEST_SIGMA_KM_S: Final = 10.0
# Frames that the orbit gives, by their names in messages (502.0-B-3, 3.2.4.11).
_ORBITAL: Final = {"RTN": rtn_to_teme, "RSW": rtn_to_teme, "QSW": rtn_to_teme, "TNW": tnw_to_teme}
_MOST_MADE: Final = 200


def frame_named(text: str, keyword: str, allowed: Collection[str] = FRAMES) -> str:
    """Return the frame that a message names so. Raises RecordError for one that cannot be turned."""
    name = frame_of(text)
    if name is None:
        raise RecordError("out_of_range", f"{keyword} is {ascii(text)[:40]}, must be one of {', '.join(allowed)}")
    return name


def with_covariances(
    ephemeris: EphemerisSegment, pieces: Sequence[Ephemeris], frame_epoch_ns: int | None, created_ns: int | None
) -> tuple[list[Ephemeris], str]:
    """Return the pieces of a path with the covariances of its message, else with assumed ones, and whose they are.

    One in a gap is left out. A piece without any has the nearest one, carried to its states. Raises RecordError.
    """
    at_ns, given = _given(ephemeris)
    stated = [_stated(ephemeris, piece, at_ns, given, frame_epoch_ns) for piece in pieces]
    known = [each for each in stated if len(each.covariance_time_ns)]
    if not known:
        return [with_default_covariances(each, created_ns) for each in pieces], BY_DEFAULT
    return [each if len(each.covariance_time_ns) else _carried(each, known) for each in stated], BY_MESSAGE


def _given(ephemeris: EphemerisSegment) -> tuple[IntArray, FloatArray]:
    """Times (m,) and covariances (m, 6, 6) of the message, in its frames. Raises RecordError."""
    time_ns, at_ns = (ephemeris.utc_ns(each) for each in (ephemeris.time_ns, ephemeris.covariance_time_ns))
    given = covariances_from_lower(ephemeris.covariances)
    if not len(at_ns):
        return at_ns, given
    variances = np.einsum("nii->ni", given)
    if np.any(variances < 0) or np.any(np.sqrt(np.abs(variances[:, :3])) > _LARGEST_SIGMA_KM):
        raise RecordError("out_of_range", "a covariance has a negative variance, or a sigma above 1,000 km")
    if np.any(np.sqrt(variances[:, 3:]) > _LARGEST_SIGMA_KM_S):
        raise RecordError("out_of_range", "a covariance has a velocity's sigma above 10 km/s")
    if is_indefinite(given[:, :3, :3]).any():
        raise RecordError("out_of_range", "a covariance of positions is indefinite: a correlation is beyond 1")
    if np.any(np.diff(at_ns) <= 0):
        raise RecordError("out_of_range", "the epochs of the covariances do not ascend")
    if at_ns[0] < time_ns[0] or at_ns[-1] > time_ns[-1]:
        raise RecordError("out_of_range", "a covariance is at a time without a state")
    return at_ns, given


def _stated(
    ephemeris: EphemerisSegment, piece: Ephemeris, at_ns: IntArray, given: FloatArray, frame_epoch_ns: int | None
) -> Ephemeris:
    """Return the piece with the covariances that are given in its span; an orbital frame is that of the state at the
    time.
    """
    inside = np.flatnonzero((at_ns >= piece.state_time_ns[0]) & (at_ns <= piece.state_time_ns[-1]))
    at_ns, given, turned = at_ns[inside], given[inside], np.empty((len(inside), 6, 6))
    own = ephemeris.value("REF_FRAME").upper()
    names = np.array([ephemeris.covariance_frames[n].upper() or own for n in inside.tolist()], str)
    for name in np.unique(names).tolist():
        rows = np.flatnonzero(names == name)
        if orbital := _ORBITAL.get(name.removesuffix("_INERTIAL")):  # its axes do not turn, as ours
            state = states_at(piece.state_time_ns, piece.state, at_ns[rows])
            turned[rows] = orbital(given[rows], state[:, :3], state[:, 3:])
        else:
            frame = frame_named(name, "COV_REF_FRAME", (*FRAMES, *_ORBITAL))
            if frame_epoch_ns is not None and frame in OF_DATE and name != own:
                raise RecordError("out_of_range", f"COV_REF_FRAME is {name}, of an epoch that is not stated")
            epoch_ns = frame_epoch_ns if name == own else None
            turned[rows] = covariances_in_teme(frame, given[rows], at_ns[rows], epoch_ns)
    return replace(piece, covariance_time_ns=at_ns, covariance=turned)


def _carried(piece: Ephemeris, known: Sequence[Ephemeris]) -> Ephemeris:
    at_ns = piece.state_time_ns[_sampled(piece)]
    found = [(abs(int(t) - int(at_ns[0])), n, each) for each in known for n, t in enumerate(each.covariance_time_ns)]
    _, number, nearest = min(found, key=lambda each: each[0])
    return replace(piece, covariance_time_ns=at_ns, covariance=nearest.carried(at_ns, np.full(len(at_ns), number)))


def _sampled(piece: Ephemeris) -> IntArray:
    """Return the rows of the states that covariances are made for."""
    count = len(piece.state_time_ns)
    return np.unique(np.linspace(0, count - 1, min(count, _MOST_MADE)).round().astype(np.int64))


def with_default_covariances(piece: Ephemeris, created_ns: int | None) -> Ephemeris:
    """Give an ephemeris without covariances assumed ones, at some of its own times.

    They grow as the errors of element sets do (`orbits.element_errors`), from ``created_ns`` on, or from the first
    state. Raises RecordError for a state on no closed orbit.
    """
    time_ns, rows = piece.state_time_ns, _sampled(piece)
    r, v = piece.state[rows, :3], piece.state[rows, 3:]
    since_ns = int(time_ns[0]) if created_ns is None else created_ns
    age_days = np.maximum(time_ns[rows] - since_ns, 0) / DAY_NS
    found = rtn_to_teme(path_covariance_rtn(age_days, r, v), r, v)
    if not np.isfinite(found).all():
        raise RecordError(
            "out_of_range", "it has no covariance, and none can be assumed: a state is on no closed orbit"
        )
    return replace(piece, covariance_time_ns=time_ns[rows], covariance=found)
