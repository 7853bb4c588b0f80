"""Observations prepared for comparison with orbits: sites, directions and noise in one shape for every kind.

Every observation is padded to six components, so that one array serves all kinds: radar range, cross-elevation,
elevation, range rate; telescope right ascension (times cosine), declination; link position and velocity. Units are
km, km/s and rad. The comparison itself is in ``measurement_model``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray, TextArray
from sda_platform.orbits import frames
from sda_platform.orbits.sensing.measurement_model import (
    ISL,
    OPTICAL,
    RADAR,
    UNKNOWN_KIND,
    MeasurementColumns,
    linearised,
)
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import Sensor

_KINDS = {"radar": RADAR, "optical": OPTICAL, "isl": ISL}
# Components that each kind requires; a range rate or a velocity is optional.
_NEEDED = np.arange(6) < np.array([3, 2, 3, 0])[:, None]
_NAN_SITE = (np.nan, np.nan, np.nan)
# Below this cosine the azimuth of a radar carries no direction worth weighting by.
_MIN_COS_ELEVATION = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class Linearisation:
    """Measured minus predicted components and partials, for ``m`` observations against ``m`` states."""

    residual: FloatArray
    """(m, 6) measured minus predicted."""
    partials: FloatArray
    """(m, 6, 6) derivative of the prediction by TEME position (km) and velocity (km/s)."""
    noise: FloatArray
    """(m, 6, 6) covariance of the measurement, with the time-tag error propagated along the predicted motion."""


@dataclasses.dataclass(frozen=True, eq=False)
class Measurements:
    """Observations prepared for comparison with states: all of shape (m, ...)."""

    kind: IntArray
    known_source: BoolArray
    complete: BoolArray
    time_ns: IntArray
    time_sigma_s: FloatArray
    site_km: FloatArray
    site_km_s: FloatArray
    pole: FloatArray
    direction: FloatArray
    value: FloatArray
    variance: FloatArray
    present: BoolArray
    site_sigma_km: FloatArray
    """(m,) 1-sigma of each component of where an orbiting observer was; 0 on the ground."""

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, index: npt.ArrayLike) -> Self:
        """Return the measurements at ``index`` (positions or a boolean mask), in that order."""
        chosen = np.asarray(index)
        columns = {field.name: getattr(self, field.name)[chosen] for field in dataclasses.fields(self)}
        return type(self)(**columns)

    def with_shared_clock_errors(self, group: IntArray, source_id: TextArray) -> Self:
        """Widen time-tag sigmas by the root of the number of a group's rows with one clock: averaging cannot reduce
        them.

        ``group``, ``source_id``: (m,) the fit each row belongs to, and the source whose clock stamped it.
        """
        if not len(group):
            return self
        _, source = np.unique(source_id, return_inverse=True)
        _, pair, counts = np.unique(group * (source.max() + 1) + source, return_inverse=True, return_counts=True)
        return dataclasses.replace(self, time_sigma_s=self.time_sigma_s * np.sqrt(counts[pair]))

    @property
    def usable(self) -> BoolArray:
        """(m,) whether the source is known and every component that its kind requires is present."""
        return self.known_source & self.complete

    @property
    def from_orbit(self) -> BoolArray:
        """Tell whether each observer is in orbit, (m,)."""
        return np.asarray(self.site_sigma_km > 0.0)

    @property
    def dimension(self) -> IntArray:
        """(m,) how many numbers each observation contributes."""
        return np.asarray(self.present.sum(axis=1), dtype=np.int64)

    def position_km(self) -> FloatArray:
        """(m, 3) TEME position measured by each radar or link observation; NaN for a telescope."""
        along = np.where(self.kind == RADAR, self.value[:, 0], np.nan)[:, None]
        return np.where((self.kind == ISL)[:, None], self.value[:, :3], self.site_km + along * self.direction)

    def linearise(self, r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> Linearisation:
        """Compare with states (m, 3), (m, 3), TEME, at the measurements' times; unusable rows give NaN or zero."""
        return Linearisation(*linearised(self.columns, r_teme_km, v_teme_km_s))

    @property
    def columns(self) -> MeasurementColumns:
        """The columns for the compiled kernels."""
        return MeasurementColumns(**{name: getattr(self, name) for name in MeasurementColumns._fields})


def prepare(observations: ObservationArrays) -> Measurements:
    """Resolve sites, directions and noise of ``m`` observations.

    A sigma that the observation lacks comes from the registry; one found in neither makes the row incomplete.
    """
    named = [observations.source_kind == name for name in _KINDS]
    kind = np.select(named, list(_KINDS.values()), UNKNOWN_KIND).astype(np.int64)
    time_ns = observations.sensor_time_ns
    sites, registered = _from_registry(observations.source_id, kind, observations.sensors)
    site_km, site_km_s = frames.site_to_teme(sites[:, 0], sites[:, 1], sites[:, 2], time_ns)
    own_km, own_km_s, own_sigma_km = _observers(observations, kind)
    from_orbit = own_sigma_km > 0.0
    site_km = np.where(from_orbit[:, None], own_km, site_km)
    site_km_s = np.where(from_orbit[:, None], own_km_s, site_km_s)
    enu = frames.enu_basis_teme(sites[:, 0], sites[:, 1], time_ns)
    radar = kind == RADAR
    value, variance = _values(observations, kind, registered)
    present = np.isfinite(value) & (variance > 0) & np.isfinite(variance)
    direction = np.where(
        radar[:, None],
        np.einsum("nij,ni->nj", enu, frames.towards(np.pi / 2 - observations.azimuth_rad, observations.elevation_rad)),
        frames.towards(observations.right_ascension_rad, observations.declination_rad),
    )
    return Measurements(
        kind=kind,
        known_source=(kind == ISL) | from_orbit | np.isfinite(sites).all(axis=1),
        complete=(present | ~_NEEDED[kind]).all(axis=1) & (kind != UNKNOWN_KIND),
        time_ns=time_ns,
        time_sigma_s=np.hypot(
            clock_bound_s(observations) / np.sqrt(3.0), np.nan_to_num(observations.clock_correction_sigma_s)
        ),
        site_km=site_km,
        site_km_s=site_km_s,
        pole=np.where(radar[:, None], enu[:, 2], np.array([0.0, 0.0, 1.0])),
        direction=direction,
        value=value,
        variance=variance,
        present=present,
        site_sigma_km=own_sigma_km,
    )


def _observers(o: ObservationArrays, kind: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where orbiting observers were (m, 3), km and km/s, TEME, and the sigma of it (m,), 0 for all others."""
    place = np.stack([o.x_m, o.y_m, o.z_m], axis=1) / 1000.0
    speed = np.stack([o.vx_m_s, o.vy_m_s, o.vz_m_s], axis=1) / 1000.0
    sigma_km = o.position_sigma_m / 1000.0
    stated = np.isfinite(place).all(axis=1) & np.isfinite(speed).all(axis=1) & (sigma_km > 0)
    return place, speed, np.where(stated & (kind == OPTICAL), sigma_km, 0.0)


def clock_bound_s(observations: ObservationArrays) -> FloatArray:
    """Largest time-tag error (m,), s, that each observation's clock quality allows; a third of its square is the
    variance.

    GPS 1 us; NTP 10 ms and 1 ms per minute since synchronisation; on-board 100 us per second since; unknown 5 s.
    Without a stated quality, a ground sensor counts as GPS-disciplined and a satellite as unknown.
    """
    age_s = np.nan_to_num(np.maximum(observations.clock_age_s, 0.0))
    is_unspecified = (observations.clock_quality == "") & (observations.source_kind != "isl")
    quality = np.where(is_unspecified, "gps_locked", observations.clock_quality)
    bound_s = np.select(
        [quality == "gps_locked", quality == "ntp_synced", quality == "onboard_drift"],
        [np.full_like(age_s, 1e-6), 0.010 + 0.001 * age_s / 60.0, 1e-4 * age_s],
        default=5.0,
    )
    return np.asarray(np.minimum(bound_s, 5.0))


def _from_registry(
    source_id: TextArray, kind: IntArray, sensors: Mapping[str, Sensor]
) -> tuple[FloatArray, FloatArray]:
    """Latitude, longitude, altitude (m, 3) and range, azimuth, elevation, range-rate, angle sigmas (m, 5)."""
    names, position = np.unique(source_id, return_inverse=True)
    known = [sensors.get(name) for name in names.tolist()]
    kinds = np.array([_KINDS.get(sensor.kind, UNKNOWN_KIND) if sensor else -1 for sensor in known], dtype=np.int64)
    sites = np.array([(s.latitude_deg, s.longitude_deg, s.altitude_m) if s else _NAN_SITE for s in known])
    sigmas = np.array(
        [
            (
                s.range_sigma_m,
                s.azimuth_sigma_rad,
                s.elevation_sigma_rad,
                s.range_rate_sigma_m_s,
                s.angle_sigma_rad,
            )
            if s
            else (np.nan,) * 5
            for s in known
        ]
    )
    matches = (kinds[position] == kind)[:, None] if len(known) else np.zeros((0, 1), dtype=bool)
    return (
        np.where(matches, sites.reshape(-1, 3)[position], np.nan),
        np.where(matches, sigmas.reshape(-1, 5)[position], np.nan),
    )


def _values(o: ObservationArrays, kind: IntArray, registered: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Measured values (m, 6) in km, km/s, rad and their variances (m, 6), in each kind's component order."""
    range_sigma_km = _first(o.range_sigma_m, registered[:, 0]) / 1000.0
    rate_sigma_km_s = _first(o.range_rate_sigma_m_s, registered[:, 3]) / 1000.0
    side_sigma = registered[:, 1] * np.maximum(np.cos(o.elevation_rad), _MIN_COS_ELEVATION)
    angle_sigma = _first(o.angle_sigma_rad, registered[:, 4])
    position_km, speed_km_s = o.position_sigma_m / 1000.0, o.velocity_sigma_m_s / 1000.0
    nothing = np.full(len(o), np.nan)
    kilometres = [column / 1000.0 for column in (o.x_m, o.y_m, o.z_m, o.vx_m_s, o.vy_m_s, o.vz_m_s)]
    value = np.stack(
        [
            _columns(o.range_m / 1000, o.azimuth_rad, o.elevation_rad, o.range_rate_m_s / 1000, nothing, nothing),
            _columns(o.right_ascension_rad, o.declination_rad, nothing, nothing, nothing, nothing),
            _columns(*kilometres),
            np.full((len(o), 6), np.nan),
        ]
    )
    sigma = np.stack(
        [
            _columns(range_sigma_km, side_sigma, registered[:, 2], rate_sigma_km_s, nothing, nothing),
            _columns(angle_sigma, angle_sigma, nothing, nothing, nothing, nothing),
            _columns(position_km, position_km, position_km, speed_km_s, speed_km_s, speed_km_s),
            np.full((len(o), 6), np.nan),
        ]
    )
    rows = np.arange(len(o))
    return value[kind, rows], sigma[kind, rows] ** 2


def _first(reported: FloatArray, registered: FloatArray) -> FloatArray:
    return np.where(np.isfinite(reported), reported, registered)


def _columns(*columns: FloatArray) -> FloatArray:
    return np.stack(columns, axis=1)
