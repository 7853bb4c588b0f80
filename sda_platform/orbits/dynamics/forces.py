"""Acceleration of a satellite in GCRF and its partial derivatives, compiled.

Forces: the Earth's field, Moon, Sun, the tide of the solid Earth (degree 2), relativity (Schwarzschild),
sunlight with the Earth's shadow, drag, and empirical accelerations. Source: Montenbruck & Gill, Satellite Orbits
(2000), chapter 3; tide: Rizos & Stolz 1985.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from sda_platform.orbits.dynamics.atmosphere import TOP_KM, density_kg_m3, exospheric_temperature_k
from sda_platform.orbits.dynamics.gravity import GM_KM3_S2, J2, MAX_DEGREE, RADIUS_KM, Field, field, field_acceleration
from sda_platform.orbits.dynamics.surroundings import Surroundings, at_time
from sda_platform.orbits.frames import ASTRONOMICAL_UNIT_KM, EARTH_ROTATION_RAD_S, SUN_RADIUS_KM, WGS84_RADIUS_KM

GM_SUN_KM3_S2, GM_MOON_KM3_S2 = 132712440018.0, 4902.800066
_SUNLIGHT_N_M2, _LIGHT_KM_S, _LOVE_NUMBER, _FLATTENING = 4.56e-6, 299792.458, 0.30, 1 / 298.257


@dataclasses.dataclass(frozen=True)
class Forces:
    """The modelled forces of one satellite; ``own_…`` are empirical accelerations."""

    degree: int = MAX_DEGREE
    """Degree of the Earth's field, 0 to 36; 0 is a point mass."""
    order: int = MAX_DEGREE
    third_bodies: bool = True
    """Moon, Sun, tide and relativity."""
    reflective_area_m2_kg: float = 0.0
    """Area over mass times radiation coefficient."""
    drag_area_m2_kg: float = 0.0
    """Area over mass times drag coefficient."""
    own_km_s2: tuple[float, float, float] = (0.0, 0.0, 0.0)
    own_rate_km_s3: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Constant in GCRF at the epoch, and its rate."""


class Model(NamedTuple):
    """What all satellites share."""

    field: Field
    around: Surroundings
    third_bodies: float
    """1, or 0 to leave them out."""


def model(around: Surroundings, forces: Forces = Forces()) -> Model:
    """Return the shared force model with the terms that ``forces`` selects."""
    return Model(field(forces.degree, forces.order), around, float(forces.third_bodies))


@njit(cache=True, nogil=True, error_model="numpy")
def derivatives(t_s: float, y: Any, parameters: Any, epoch: Any, model: Any, work: Any, out: Any) -> None:
    """Rates ``out`` of a state ``y`` (6,) or of state and partials (54,), GCRF, km and s.

    The partials are rows of (6, 8) by the state at the start, drag area and reflective area. Time counts from
    ``epoch``, a row of the table of surroundings and seconds after it. ``parameters`` (8,): drag area, reflective area,
    own acceleration, its rate. ``work`` (2, 40, 40).
    """
    values = work[0, 39]
    at_time(model.around, epoch[0], epoch[1] + t_s, values)
    x, y_, z = y[0], y[1], y[2]
    square = x * x + y_ * y_ + z * z
    distance = math.sqrt(square)
    turn = values
    fixed_x = turn[0] * x + turn[1] * y_ + turn[2] * z
    fixed_y = turn[3] * x + turn[4] * y_ + turn[5] * z
    fixed_z = turn[6] * x + turn[7] * y_ + turn[8] * z
    gx, gy, gz = field_acceleration(fixed_x, fixed_y, fixed_z, model.field, work[0], work[1])
    push = work[1, 39]
    for n in range(3):
        push[n] = turn[n] * gx + turn[3 + n] * gy + turn[6 + n] * gz
        push[n] += parameters[2 + n] + parameters[5 + n] * t_s
    if model.third_bodies > 0:
        _attract(y, values[9:12], GM_MOON_KM3_S2, square, distance, push)
        _attract(y, values[12:15], GM_SUN_KM3_S2, square, distance, push)
        _relativity(y, distance, push)
    shine = _sunlight(y, values[12:15], distance)
    line = 1 / math.sqrt((x - values[12]) ** 2 + (y_ - values[13]) ** 2 + (z - values[14]) ** 2)
    out[0], out[1], out[2] = y[3], y[4], y[5]
    sine = fixed_z / distance
    height = distance - RADIUS_KM * (1 - _FLATTENING * sine * sine)
    drag = 0.0
    wind_x, wind_y, wind_z = 0.0, 0.0, 0.0
    if height < TOP_KM:
        # The pole of the Earth-fixed frame is the third row of the rotation.
        spin = EARTH_ROTATION_RAD_S
        wind_x = y[3] - spin * (turn[7] * z - turn[8] * y_)
        wind_y = y[4] - spin * (turn[8] * x - turn[6] * z)
        wind_z = y[5] - spin * (turn[6] * y_ - turn[7] * x)
        speed = math.sqrt(wind_x * wind_x + wind_y * wind_y + wind_z * wind_z)
        sun_distance = math.sqrt(values[12] ** 2 + values[13] ** 2 + values[14] ** 2)
        hour = math.atan2(y_, x) - math.atan2(values[13], values[12])
        kelvin = exospheric_temperature_k(
            values[15], values[16], math.asin(sine), hour, math.asin(values[14] / sun_distance)
        )
        drag = -0.5e3 * density_kg_m3(height, kelvin, values[17]) * speed
    area, mirror = parameters[0], parameters[1]
    for n in range(3):
        wind = wind_x if n == 0 else (wind_y if n == 1 else wind_z)
        light = shine * (y[n] - values[12 + n]) * line
        out[3 + n] = push[n] + area * drag * wind + mirror * light
    if len(y) > 6:
        _partials(y, square, distance, turn, area * drag, drag, wind_x, wind_y, wind_z, shine * line, values, out)


@njit(cache=True, nogil=True, error_model="numpy")
def _partials(
    y: Any,
    square: float,
    distance: float,
    turn: Any,
    friction: float,
    drag: float,
    wind_x: float,
    wind_y: float,
    wind_z: float,
    light: float,
    values: Any,
    out: Any,
) -> None:
    """Rates of the partials: gradients of the point mass, the flattening, Moon and Sun, and drag by velocity."""
    mass = GM_KM3_S2 / (square * distance)
    px, py, pz = turn[6], turn[7], turn[8]
    height = (y[0] * px + y[1] * py + y[2] * pz) / distance
    flat = 1.5 * J2 * mass * RADIUS_KM * RADIUS_KM / square
    gradient = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            unit = 1.0 if i == j else 0.0
            a, b = y[i] / distance, y[j] / distance
            pi, pj = turn[6 + i], turn[6 + j]
            g = -mass * (unit - 3 * a * b)
            g += flat * (
                (5 * height * height - 1) * unit
                + 5 * (1 - 7 * height * height) * a * b
                + 10 * height * (a * pj + pi * b)
                - 2 * pi * pj
            )
            for k, gm in ((9, GM_MOON_KM3_S2), (12, GM_SUN_KM3_S2)):
                body = math.sqrt(values[k] ** 2 + values[k + 1] ** 2 + values[k + 2] ** 2)
                g += gm / body**3 * (3 * values[k + i] * values[k + j] / (body * body) - unit)
            gradient[i, j] = g
    speed = max(math.sqrt(wind_x * wind_x + wind_y * wind_y + wind_z * wind_z), 1e-9)
    for c in range(8):
        p0, p1, p2 = y[6 + c], y[14 + c], y[22 + c]
        q0, q1, q2 = y[30 + c], y[38 + c], y[46 + c]
        along = friction * (wind_x * q0 + wind_y * q1 + wind_z * q2) / (speed * speed)
        out[6 + c], out[14 + c], out[22 + c] = q0, q1, q2
        for i in range(3):
            wind, q = (wind_x, q0) if i == 0 else ((wind_y, q1) if i == 1 else (wind_z, q2))
            rate = gradient[i, 0] * p0 + gradient[i, 1] * p1 + gradient[i, 2] * p2 + friction * q + along * wind
            if c == 6:
                rate += drag * wind
            elif c == 7:
                rate += light * (y[i] - values[12 + i])
            out[30 + 8 * i + c] = rate


@njit(cache=True, nogil=True, error_model="numpy")
def _attract(y: Any, body: Any, gm: float, square: float, distance: float, push: Any) -> None:
    """Add a body's attraction, less that of the Earth's centre, and that of the tide that it raises."""
    to_body = math.sqrt(body[0] * body[0] + body[1] * body[1] + body[2] * body[2])
    lx, ly, lz = body[0] - y[0], body[1] - y[1], body[2] - y[2]
    near, far = gm / math.sqrt(lx * lx + ly * ly + lz * lz) ** 3, gm / to_body**3
    cosine = (y[0] * body[0] + y[1] * body[1] + y[2] * body[2]) / (distance * to_body)
    tide = 0.5 * _LOVE_NUMBER * gm * RADIUS_KM**5 / (to_body**3 * square * square)
    up, across = tide * (3 - 15 * cosine * cosine) / distance, tide * 6 * cosine / to_body
    for n in range(3):
        push[n] += near * (body[n] - y[n]) - far * body[n] + up * y[n] + across * body[n]


@njit(cache=True, nogil=True, error_model="numpy")
def _relativity(y: Any, distance: float, push: Any) -> None:
    speed = y[3] * y[3] + y[4] * y[4] + y[5] * y[5]
    rising = y[0] * y[3] + y[1] * y[4] + y[2] * y[5]
    scale = GM_KM3_S2 / (_LIGHT_KM_S * _LIGHT_KM_S * distance**3)
    for n in range(3):
        push[n] += scale * ((4 * GM_KM3_S2 / distance - speed) * y[n] + 4 * rising * y[3 + n])


@njit(cache=True, nogil=True, error_model="numpy")
def _sunlight(y: Any, sun: Any, distance: float) -> float:
    """Acceleration, km/s2, of 1 m2/kg by the visible part of the Sun."""
    dx, dy, dz = sun[0] - y[0], sun[1] - y[1], sun[2] - y[2]
    to_sun = math.sqrt(dx * dx + dy * dy + dz * dz)
    full = 1e-3 * _SUNLIGHT_N_M2 * (ASTRONOMICAL_UNIT_KM / to_sun) ** 2
    cosine = -(y[0] * dx + y[1] * dy + y[2] * dz) / (distance * to_sun)
    if cosine < 0:
        return full
    a, b = SUN_RADIUS_KM / to_sun, math.asin(min(WGS84_RADIUS_KM / distance, 1.0))
    c = math.acos(min(cosine, 1.0))
    if c >= a + b:
        return full
    if c <= b - a:
        return 0.0
    x = (c * c + a * a - b * b) / (2 * c)
    height = math.sqrt(max(a * a - x * x, 0.0))
    overlap = a * a * math.acos(min(max(x / a, -1.0), 1.0)) + b * b * math.acos(min(max((c - x) / b, -1.0), 1.0))
    return full * (1 - (overlap - c * height) / (math.pi * a * a))
