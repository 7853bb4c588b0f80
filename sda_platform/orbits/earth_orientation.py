"""Celestial frames: states between GCRF, ICRF, EME2000, the true equator of date, TEME and ITRF.

Precession and nutation: IAU 2006/2000A (ERFA). ITRF and TEME differ by UT1 and polar motion (`frames`). The rotation
from TEME into GCRF is slow: it is computed at whole hours and linear between them, to 10 microarcseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import erfa
import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.earth_parameters import (
    julian,
    orientation,
    require_published,
    terrestrial_time,
    ut1_ns,
)
from sda_platform.orbits.frames import (
    ASTRONOMICAL_UNIT_KM,
    earth_rotation_cross,
    itrf_to_teme,
    teme_to_itrf,
    velocity_itrf_to_teme,
    velocity_teme_to_itrf,
)
from sda_platform.units import DAY_S, HOUR_NS

_NODE_NS = HOUR_NS
_NODES_PER_DAY = 24
_DAYS_KEPT = 512
_PARTS = (slice(0, 3), slice(3, 6))

FRAMES = ("GCRF", "ICRF", "EME2000", "TEME", "TOD", "ITRF")
"""The frames whose states can be compared; ITRF means each of its realisations."""
_REALISED = re.compile(r"(?:J2000|(GCRF|ICRF)\d*|(ITRF).*|WGS-?84)")


def frame_of(name: str) -> str | None:
    """Return the one of FRAMES that a message names so, in any case; None: it is none of them.

    Realisations differ by centimetres. J2000 is EME2000, as programs write it, and WGS84 an ITRF.
    """
    text = name.strip().upper()
    if found := _REALISED.fullmatch(text):
        return found[1] or found[2] or ("EME2000" if text == "J2000" else "ITRF")
    return text if text in FRAMES else None


def in_gcrf(frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: int) -> tuple[FloatArray, FloatArray]:
    """A state, (3,) each, given in one of FRAMES, in GCRF; the velocity is inertial.

    Raises:
        UnknownOrientation: for ITRF, outside of the published Earth orientation.
    """
    r, v = states_in_gcrf(frame, r_km[None], v_km_s[None], np.array([time_ns], np.int64))
    return r[0], v[0]


def states_in_gcrf(
    frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Convert states (n, 3), (n, 3) in TEME at ``time_ns`` (n,) to GCRF."""
    if frame == "ITRF":
        require_published(time_ns)
        frame, r_km, v_km_s = "TEME", itrf_to_teme(r_km, time_ns), velocity_itrf_to_teme(r_km, v_km_s, time_ns)
    turn = to_gcrf(frame, time_ns)
    return _turned(turn, r_km), _turned(turn, v_km_s)


def states_in_teme(
    frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: IntArray, frame_epoch_ns: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """States (n, 3), (n, 3), given in one of FRAMES at ``time_ns`` (n,), in TEME of date. Raises as `in_gcrf`.

    ``frame_epoch_ns``: of TOD and TEME the instant of their axes, where they do not turn with the date.
    """
    if frame_epoch_ns is not None:
        turn = gcrf_to_teme(time_ns) @ to_gcrf(frame, np.full_like(time_ns, frame_epoch_ns))
        return _turned(turn, r_km), _turned(turn, v_km_s)
    if frame == "TEME":
        return r_km, v_km_s
    r, v = states_in_gcrf(frame, r_km, v_km_s, time_ns)
    back = gcrf_to_teme(time_ns)
    return _turned(back, r), _turned(back, v)


def covariances_in_teme(
    frame: str, covariance: FloatArray, time_ns: IntArray, frame_epoch_ns: int | None = None
) -> FloatArray:
    """Return covariances (n, 6, 6) of states given in one of FRAMES at ``time_ns`` (n,), in TEME of date, as
    `states_in_teme`.

    Velocities in ITRF are those relative to the Earth: an error of position is one of inertial velocity as well.
    """
    frame_ns = time_ns if frame_epoch_ns is None else np.full_like(time_ns, frame_epoch_ns)
    whole = np.zeros((len(time_ns), 6, 6))
    whole[:, :3, :3] = whole[:, 3:, 3:] = turn = gcrf_to_teme(time_ns) @ to_gcrf(frame, frame_ns)
    if frame == "ITRF":
        whole[:, 3:, :3] = earth_rotation_cross(turn.swapaxes(1, 2)).swapaxes(1, 2)
    return np.asarray(whole @ covariance @ whole.swapaxes(1, 2))


def states_from_teme(
    frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """States (n, 3), (n, 3), TEME of date at ``time_ns`` (n,), in one of FRAMES: the inverse of `states_in_teme`."""
    if frame == "TEME":
        return r_km, v_km_s
    if frame == "ITRF":
        require_published(time_ns)
        return teme_to_itrf(r_km, time_ns), velocity_teme_to_itrf(r_km, v_km_s, time_ns)
    turn = to_gcrf(frame, time_ns).swapaxes(1, 2) @ to_gcrf("TEME", time_ns)
    return _turned(turn, r_km), _turned(turn, v_km_s)


def covariances_from_teme(frame: str, covariance: FloatArray, time_ns: IntArray) -> FloatArray:
    """Covariances (n, 6, 6) of states in TEME of date at ``time_ns`` (n,), in one of FRAMES: the inverse of
    `covariances_in_teme`.
    """
    if frame == "TEME":
        return covariance
    whole = np.zeros((len(time_ns), 6, 6))
    whole[:, :3, :3] = whole[:, 3:, 3:] = turn = to_gcrf(frame, time_ns).swapaxes(1, 2) @ to_gcrf("TEME", time_ns)
    if frame == "ITRF":
        whole[:, 3:, :3] = -turn @ earth_rotation_cross(np.eye(3)).T
    return np.asarray(whole @ covariance @ whole.swapaxes(1, 2))


def gcrf_of_teme(state_teme: FloatArray, time_ns: IntArray) -> FloatArray:
    """States (n, 6), TEME of date at ``time_ns`` (n,), in GCRF; km and km/s.

    Velocities turn like positions: TEME itself turns by less than 1e-11 rad/s.
    """
    return _turned_parts(to_gcrf("TEME", time_ns), state_teme)


def teme_of_gcrf(state_gcrf: FloatArray, time_ns: IntArray) -> FloatArray:
    """States (n, 6), GCRF, in TEME of date at ``time_ns`` (n,); km and km/s."""
    return _turned_parts(gcrf_to_teme(time_ns), state_gcrf)


def to_gcrf(frame: str, time_ns: IntArray) -> FloatArray:
    """Return the rotations (n, 3, 3) from one of FRAMES at ``time_ns`` (n,) into GCRF. Raises as `in_gcrf`."""
    if frame in ("GCRF", "ICRF"):
        return np.broadcast_to(np.eye(3), (len(time_ns), 3, 3))
    if frame == "EME2000":
        return np.broadcast_to(erfa.bp06(erfa.DJ00, 0.0)[0].T, (len(time_ns), 3, 3))
    if frame == "TOD":
        return _between_nodes(_tod_to_gcrf, time_ns)
    if frame == "ITRF":
        require_published(time_ns)
        return gcrf_to_itrf(time_ns).swapaxes(1, 2)
    return _between_nodes(_teme_to_gcrf, time_ns)


def gcrf_to_teme(time_ns: IntArray) -> FloatArray:
    """Return the rotations (n, 3, 3) from GCRF into TEME of date."""
    return to_gcrf("TEME", time_ns).swapaxes(1, 2)


def moon_gcrf_km(time_ns: IntArray) -> FloatArray:
    """Return the Moon's positions (n, 3) from the Earth's centre, km: ERFA ``moon98`` (Meeus), to 10 arcseconds."""
    return np.asarray(erfa.moon98(*terrestrial_time(time_ns))["p"] * ASTRONOMICAL_UNIT_KM)


def moon_teme_km(time_ns: IntArray) -> FloatArray:
    """Return the same in TEME of date."""
    return np.asarray(np.einsum("nij,nj->ni", gcrf_to_teme(time_ns), moon_gcrf_km(time_ns)))


def gcrf_to_itrf(time_ns: IntArray) -> FloatArray:
    """Return the rotations (n, 3, 3) from GCRF into ITRF; beyond the published span as
    `earth_parameters.orientation`.
    """
    columns = to_gcrf("TEME", time_ns)
    return np.asarray(teme_to_itrf(columns, time_ns[:, None]).swapaxes(1, 2))


def earth_velocity_km_s(time_ns: IntArray) -> FloatArray:
    """Return the Earth's velocity (n, 3) about the barycentre of the solar system, axes of GCRF. Source: ERFA
    `epv00`.
    """
    return _between_nodes(_earth_velocity_km_s, time_ns)


def _earth_velocity_km_s(time_ns: IntArray) -> FloatArray:
    _, barycentric = erfa.epv00(*terrestrial_time(time_ns))
    return np.asarray(barycentric["v"] * (erfa.DAU / 1000.0 / DAY_S))


def _tod_to_gcrf(time_ns: IntArray) -> FloatArray:
    return np.asarray(erfa.pnm06a(*terrestrial_time(time_ns)).swapaxes(-1, -2))


def _teme_to_gcrf(time_ns: IntArray) -> FloatArray:
    tt, ut1 = terrestrial_time(time_ns), julian(ut1_ns(time_ns, orientation(time_ns)))
    # Turned by mean sidereal time TEME is the Earth-fixed frame of the pole (Vallado, AIAA 2006-6753, appendix C).
    spun = erfa.rz(erfa.gmst82(*ut1), np.eye(3))
    return np.asarray(erfa.c2t06a(*tt, *ut1, 0.0, 0.0).swapaxes(-1, -2) @ erfa.rz(erfa.sp00(*tt), spun))


def _between_nodes(exact: Callable[[IntArray], FloatArray], time_ns: IntArray) -> FloatArray:
    """A slow function of time (n, ...) by straight lines between whole hours, so that it depends on the time alone."""
    if not len(time_ns):
        return exact(time_ns)
    node, rest_ns = np.divmod(time_ns, _NODE_NS)
    days, which = np.unique(node // _NODES_PER_DAY, return_inverse=True)
    nodes = np.stack([_nodes_of_day(exact, day) for day in days.tolist()])
    hour = node % _NODES_PER_DAY
    low, high = nodes[which, hour], nodes[which, hour + 1]
    share = (rest_ns / _NODE_NS).reshape(-1, *(1,) * (low.ndim - 1))
    return np.asarray(low + share * (high - low))


@lru_cache(maxsize=_DAYS_KEPT)
def _nodes_of_day(exact: Callable[[IntArray], FloatArray], day: int) -> FloatArray:
    """Return the function at the day's 25 whole hours."""
    return exact((day * _NODES_PER_DAY + np.arange(_NODES_PER_DAY + 1, dtype=np.int64)) * _NODE_NS)


def _turned(turn: FloatArray, vector: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nij,nj->ni", turn, vector))


def _turned_parts(turn: FloatArray, state: FloatArray) -> FloatArray:
    return np.concatenate([_turned(turn, state[:, part]) for part in _PARTS], axis=1)
