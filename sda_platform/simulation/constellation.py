"""Simulated star trackers in orbit: satellites of a constellation see others cross their fields, and say where they
were.

Fields point anywhere above the observer's horizon, and away from the Sun. Every observer has a bias of its own, which
does not change; the stated sigma covers it. Chance is seeded by the second, so that any division of time gives the same
observations.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from scipy.special import ndtri

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.optical import OBSERVER, RADIANS_PER_ARCSECOND, OpticalRecord, encode_optical_record
from sda_platform.orbits.frames import radec, sun_teme_km, sunlit_fraction
from sda_platform.orbits.sensing.light import seen_state
from sda_platform.simulation.randomness import keyed_integers, keyed_uniform, stream
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.time_tag_biases import stamped_times
from sda_platform.units import SECOND_NS

_SUN_FREE: Final = np.cos(np.radians(30.0))
_TRIED: Final = 4.0
"""How many observers look for a transit, for each that is to report one."""


@dataclass(frozen=True)
class Constellation:
    """Observers in orbit: the objects whose names begin with ``name``, and what they see.

    Noise and bias are 1-sigma of either angle; the position that an observer reports errs by ``position_sigma_m``.
    """

    name: str = "STARLINK"
    rate_per_s: int = 347
    half_field_deg: float = 15.0
    reach_km: float = 1000.0
    noise_arcsec: float = 10.0
    bias_arcsec: float = 3.0
    position_sigma_m: float = 5.0
    velocity_sigma_m_s: float = 0.01

    @property
    def stated_arcsec(self) -> float:
        """The sigma that observers state."""
        return round(float(np.hypot(self.noise_arcsec, self.bias_arcsec)), 4)


@dataclass(frozen=True)
class Transits:
    """What the observers of a span report, by time: records, and the truth of the ``index`` (m,) that they saw."""

    payloads: list[bytes]
    native: list[str]
    source_id: npt.NDArray[np.str_]
    index: IntArray
    time_ns: IntArray
    sensor_time_ns: IntArray
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray


def transits(sky: Sky, constellation: Constellation, seed: int, start_time_ns: int, stop_time_ns: int) -> Transits:
    """Return the transits that the constellation's objects in ``sky`` report in [start, stop), at whole seconds."""
    seconds = np.arange(-(-start_time_ns // SECOND_NS), -(-stop_time_ns // SECOND_NS)) * SECOND_NS
    watching = np.array([row for row, name in enumerate(sky.object_name) if name.startswith(constellation.name)], int)
    r_teme_km = sky.coarse(seconds)
    seen = [_seen(sky, constellation, seed, t, r_teme_km[:, n], watching) for n, t in enumerate(seconds.tolist())]
    observer, index = (np.concatenate([np.zeros(0, np.int64), *(pair[n] for pair in seen)]) for n in (0, 1))
    time_ns = np.repeat(seconds, [len(pair[0]) for pair in seen])
    own_error, own_r, own_v = sky.states(observer, time_ns)
    error, r, v = sky.states(index, time_ns)
    kept = np.flatnonzero((own_error == 0) & (error == 0))
    observer, index, time_ns = observer[kept], index[kept], time_ns[kept]
    own_r, own_v, r, v = own_r[kept], own_v[kept], r[kept], v[kept]
    source_id = np.array([f"optical-orbit-{number}" for number in sky.norad_id[observer].tolist()], dtype=np.str_)
    noise = _noise(seed, seconds, time_ns)
    right_ascension, declination = radec(seen_state(r, v, own_r)[0] - own_r)
    off = (constellation.noise_arcsec * noise[:, :2] + _biases(constellation, seed, source_id)) * RADIANS_PER_ARCSECOND
    right_ascension = (right_ascension + off[:, 0] / np.maximum(np.cos(declination), 1e-6)) % (2 * np.pi)
    declination = np.clip(declination + off[:, 1], -np.pi / 2, np.pi / 2)
    sensor_time_ns, age_s = stamped_times(seed, "gps_locked", source_id.tolist(), time_ns)
    place = 1e3 * own_r + constellation.position_sigma_m * noise[:, 2:5]
    speed = 1e3 * own_v + constellation.velocity_sigma_m_s * noise[:, 5:]
    keys = list(zip(source_id.tolist(), sky.norad_id[index].tolist(), time_ns.tolist(), strict=True))
    native = [f"{key:016x}" for key in keyed_integers(seed, "transit", keys).tolist()]
    columns = (sensor_time_ns, right_ascension, declination, age_s, np.hstack([place, speed]))
    payloads = [
        encode_optical_record(
            OpticalRecord(
                obs_id=name,
                timestamp_ns=at_ns,
                ra_rad=ra,
                dec_rad=dec,
                sigma_arcsec=constellation.stated_arcsec,
                site_id=source.removeprefix("optical-"),
                clock_quality="gps_locked",
                clock_age_s=age,
                **dict(zip(OBSERVER, (*state, constellation.position_sigma_m), strict=True)),
            )
        )
        for name, source, at_ns, ra, dec, age, state in zip(
            native, source_id.tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]
    return Transits(payloads, native, source_id, index, time_ns, sensor_time_ns, r, v)


def _seen(
    sky: Sky, constellation: Constellation, seed: int, time_ns: int, r_teme_km: FloatArray, watching: IntArray
) -> tuple[IntArray, IntArray]:
    """Observers and what each of them sees at a time: rows of the sky (k,), (k,)."""
    chance = stream(seed, "transits", time_ns)
    exists = (sky.born_time_ns <= time_ns) & (time_ns < sky.ended_time_ns) & np.isfinite(r_teme_km).all(axis=1)
    sun_km = sun_teme_km(time_ns)
    with np.errstate(invalid="ignore"):
        lit = np.flatnonzero(exists & (sunlit_fraction(r_teme_km, np.broadcast_to(sun_km, r_teme_km.shape)) >= 1.0))
    observer = chance.permutation(watching[exists[watching]])[: round(_TRIED * constellation.rate_per_s)]
    if not len(lit) or not len(observer):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    boresight = chance.standard_normal((len(observer), 3))
    boresight /= np.linalg.norm(boresight, axis=1, keepdims=True)
    boresight *= np.sign(np.einsum("ni,ni->n", boresight, r_teme_km[observer]))[:, None]
    near = cKDTree(r_teme_km[lit]).query_ball_point(r_teme_km[observer], constellation.reach_km)
    counts = np.fromiter(map(len, near), np.int64, len(near))
    row, target = np.repeat(np.arange(len(near)), counts), lit[np.fromiter(chain.from_iterable(near), np.int64)]
    line = r_teme_km[target] - r_teme_km[observer[row]]
    ahead = np.einsum("ni,ni->n", line, boresight[row]) / np.maximum(np.linalg.norm(line, axis=1), 1e-9)
    free = boresight @ (sun_km / np.linalg.norm(sun_km)).ravel() < _SUN_FREE
    inside = (ahead >= np.cos(np.radians(constellation.half_field_deg))) & free[row] & (target != observer[row])
    row, target = row[inside], target[inside]
    order = chance.permutation(len(row))
    _, first = np.unique(row[order], return_index=True)
    chosen = order[first][: constellation.rate_per_s]
    return observer[row[chosen]], target[chosen]


def _noise(seed: int, seconds: IntArray, time_ns: IntArray) -> FloatArray:
    """Standard normal numbers (m, 8) of observations at ``time_ns`` (m,), ascending, from streams of the seconds."""
    counts = np.searchsorted(time_ns, seconds, side="right") - np.searchsorted(time_ns, seconds)
    parts = [
        stream(seed, "star trackers", at_ns).standard_normal((count, 8))
        for at_ns, count in zip(seconds.tolist(), counts.tolist(), strict=True)
    ]
    return np.concatenate([np.zeros((0, 8)), *parts])


def _biases(constellation: Constellation, seed: int, source_id: npt.NDArray[np.str_]) -> FloatArray:
    """Return the biases (m, 2) of both angles, arcseconds."""
    names, inverse = np.unique(source_id, return_inverse=True)
    uniform = [keyed_uniform(seed, f"boresight {axis}", names.tolist()) for axis in (1, 2)]
    return np.asarray(constellation.bias_arcsec * ndtri(np.clip(np.stack(uniform, axis=1), 1e-9, 1 - 1e-9))[inverse])
