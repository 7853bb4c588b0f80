"""The peer of `fusion.py`: Stone Soup's extended Kalman filter over the same radar observations, as fast as it goes.

It is given what takes it longest for nothing: which object each reading is of, its models built beforehand, light time
taken out of the time stamps, analytic Jacobians, and a transition of one Runge-Kutta step with J2 from look to look.
Its own spherical measurement model is used with axes that do not turn, the noise turned instead.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from stonesoup.base import Property
from stonesoup.models.measurement.nonlinear import CartesianToElevationBearingRangeRate
from stonesoup.models.transition.base import TransitionModel
from stonesoup.predictor.kalman import ExtendedKalmanPredictor
from stonesoup.types.array import CovarianceMatrix, StateVector
from stonesoup.types.detection import Detection
from stonesoup.types.hypothesis import SingleHypothesis
from stonesoup.types.state import GaussianState
from stonesoup.updater.kalman import ExtendedKalmanUpdater

from sda_platform.arrays import FloatArray
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.sensing.measurements import Measurements
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

# WGS72, as SGP4 has it.
_J2_TERM = 1.5 * 0.001082616 * 6378.135**2
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_ORDER = [0, 3, 1, 4, 2, 5]  # Stone Soup's places: x, vx, y, vy, z, vz
Track = tuple[GaussianState, Sequence[Detection]]


class Orbit(TransitionModel):  # type: ignore[misc]  # Stone Soup has no types
    """Motion about an oblate Earth, km and km/s; next to no process noise over half a minute."""

    noise_km2_s3: float = Property(default=1e-13, doc="Spectral density of white acceleration")

    @property
    def ndim_state(self) -> int:
        """Six: position and velocity."""
        return 6

    def function(self, state: Any, time_interval: timedelta | None = None, **_: Any) -> Any:
        """The state one Runge-Kutta step of fourth order later."""
        assert time_interval is not None
        step = time_interval.total_seconds()
        start = state.state_vector[:, 0].astype(float)
        k1 = _slope(start)
        k2 = _slope(start + step / 2 * k1)
        k3 = _slope(start + step / 2 * k2)
        k4 = _slope(start + step * k3)
        return StateVector(start + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))

    def jacobian(self, state: Any, time_interval: timedelta | None = None, **_: Any) -> FloatArray:
        """Its first order by the gradient of a point mass: over a second exact to 1e-9."""
        assert time_interval is not None
        step = time_interval.total_seconds()
        r = state.state_vector[0::2, 0].astype(float)
        distance = np.sqrt(r @ r)
        gradient = MU_EARTH_KM3_S2 / distance**3 * (3 * np.outer(r, r) / distance**2 - np.eye(3))
        found = np.empty((6, 6))
        found[0::2, 0::2] = found[1::2, 1::2] = np.eye(3) + step**2 / 2 * gradient
        found[0::2, 1::2] = step * np.eye(3)
        found[1::2, 0::2] = step * gradient
        return found

    def covar(self, time_interval: timedelta | None = None, **_: Any) -> FloatArray:
        """Of white acceleration over the interval."""
        assert time_interval is not None
        step = time_interval.total_seconds()
        pair = self.noise_km2_s3 * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]])
        return np.kron(np.eye(3), pair).view(CovarianceMatrix)

    def rvs(self, *_: Any, **__: Any) -> Any:
        """Not used: the filter draws nothing."""
        raise NotImplementedError

    def pdf(self, *_: Any, **__: Any) -> Any:
        """Not used."""
        raise NotImplementedError


def _slope(state: FloatArray) -> FloatArray:
    x, y, z = state[0], state[2], state[4]
    r2 = x * x + y * y + z * z
    pull = -MU_EARTH_KM3_S2 / (r2 * np.sqrt(r2))
    flat, up = _J2_TERM / r2, 5 * z * z / r2
    sideways = pull * (1 + flat * (1 - up))
    return np.array([state[1], sideways * x, state[3], sideways * y, state[5], pull * (1 + flat * (3 - up)) * z])


def track(
    measurements: Measurements, rows: Sequence[int], r: FloatArray, v: FloatArray, covariance: FloatArray
) -> Track:
    """What the filter is given of one object: its prior at the first of the observations ``rows``, and these in order.

    ``r``, ``v`` (3,) and ``covariance`` (6, 6) km and km/s, TEME.
    """
    delay_s = measurements.value[rows, 0] / LIGHT_KM_S
    seconds = (measurements.time_ns[rows] - 1_700_000_000 * 10**9) / 1e9 - delay_s
    prior = GaussianState(
        StateVector(np.concatenate([r, v])[_ORDER]),
        CovarianceMatrix(covariance[np.ix_(_ORDER, _ORDER)]),
        timestamp=_EPOCH + timedelta(seconds=float(seconds[0])),
    )
    detections = [
        _detection(measurements, row, _EPOCH + timedelta(seconds=float(at)))
        for row, at in zip(rows, seconds, strict=True)
    ]
    return prior, detections


def _detection(measurements: Measurements, row: int, time: datetime) -> Detection:
    towards = measurements.direction[row]
    declination, bearing = np.arcsin(towards[2]), np.arctan2(towards[1], towards[0])
    distance, rate = measurements.value[row, 0], measurements.value[row, 3]
    pole = measurements.pole[row]
    # Across and above, as the radar measures, in directions of growing declination and right ascension.
    sideways = np.cross(towards, pole)
    sideways /= np.linalg.norm(sideways)
    upward = np.cross(sideways, towards)
    north = np.array(
        [-np.sin(declination) * np.cos(bearing), -np.sin(declination) * np.sin(bearing), np.cos(declination)]
    )
    east = np.array([-np.sin(bearing), np.cos(bearing), 0.0])
    turn = np.stack([[north @ sideways, north @ upward], [east @ sideways, east @ upward]])
    turn[1] /= np.cos(declination)
    variance = measurements.variance[row]
    noise = np.zeros((4, 4))
    noise[:2, :2] = turn @ np.diag(variance[1:3]) @ turn.T
    noise[2, 2], noise[3, 3] = variance[0], variance[3]
    model = CartesianToElevationBearingRangeRate(
        ndim_state=6,
        mapping=(0, 2, 4),
        velocity_mapping=(1, 3, 5),
        noise_covar=noise,
        translation_offset=StateVector(measurements.site_km[row]),
        velocity=StateVector(measurements.site_km_s[row]),
    )
    value = model._typed_vector()
    value[:, 0] = [type(value[0, 0])(declination), type(value[1, 0])(bearing), distance, rate]
    return Detection(value.view(StateVector), timestamp=time, measurement_model=model)


def filtered(tracks: Sequence[Track]) -> FloatArray:
    """Predict to and update with each reading; position and velocity (n, 6) after the last one."""
    predictor, updater = ExtendedKalmanPredictor(Orbit()), ExtendedKalmanUpdater(None)
    found = np.empty((len(tracks), 6))
    for number, (state, detections) in enumerate(tracks):
        for detection in detections:
            prediction = predictor.predict(state, timestamp=detection.timestamp)
            state = updater.update(SingleHypothesis(prediction, detection))
        found[number, _ORDER] = state.state_vector[:, 0].astype(float)
    return found
