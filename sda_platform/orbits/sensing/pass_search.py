"""Compiled search for the intervals in which one ground sensor can observe one object.

Positions between nodes are cubic Hermite polynomials of the nodes' Earth-fixed positions and velocities. Every
condition is a function of time that is positive where it holds; intervals end at its roots, found by bisection. A
maximum is searched for as well where both neighbouring nodes are below zero, and a minimum where both are above. So no
short pass between two nodes is lost.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from sda_platform.orbits.frames import EARTH_ROTATION_RAD_S, SUN_RADIUS_KM, WGS84_RADIUS_KM

ELEVATION, RANGE, LIGHT, DARKNESS, MOONLIGHT = 0, 1, 2, 3, 4
"""Conditions: above the elevation mask, within range, the object in full sunlight, the site dark, the Moon far."""

SITE, UP, EAST, NORTH, SIN_MASK, MAX_RANGE, SIN_DARK, IS_OPTICAL, SENSOR_TERMS = 0, 3, 6, 9, 12, 13, 14, 15, 16
"""Positions of a sensor's terms in its row: three vectors of three terms after the site, then scalars."""
SUN_START, SUN_END, SPAN_S, ANGLE_RAD, SKY_TERMS = 0, 3, 6, 7, 8
"""Positions of the sky's terms: the Sun's TEME position (km) at both ends, the span, sidereal angle at the start.

After them come the Moon's TEME positions (km) at the start and every MOON_STEP_S from there, beyond the end.
"""
MOON_STEP_S = 10_800.0
"""The Moon moves by 1.6 degrees in this time: on the chord it is off by less than an arcminute."""
MOON_EXCLUSION_RAD = math.radians(20.0)
"""So near the Moon its scattered light hides faint objects (Krisciunas & Schaefer 1991)."""
FOUND_TERMS = 8
"""Terms of a window: rise, culmination, set (s); azimuth at each (rad); greatest elevation (rad); range there (km)."""

_ROOT_STEPS = 44
_SLOPE_S = 0.02
_TOP_S = 0.05
_NEWTON_STEPS = 3
_GOLDEN = 0.3819660112501051
_MOST_PIECES = 256


@njit(cache=True, nogil=True, error_model="numpy")
def _position(r: Any, v: Any, step_s: float, time_s: float) -> tuple[float, float, float]:
    """Earth-fixed position, km, by the Hermite polynomial between the nodes around ``time_s``."""
    node = min(max(int(time_s / step_s), 0), len(r) - 2)
    s = time_s / step_s - node
    a, b = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s)
    c, d = s * (1 - s) ** 2 * step_s, s * s * (s - 1) * step_s
    return (
        a * r[node, 0] + b * r[node + 1, 0] + c * v[node, 0] + d * v[node + 1, 0],
        a * r[node, 1] + b * r[node + 1, 1] + c * v[node, 1] + d * v[node + 1, 1],
        a * r[node, 2] + b * r[node + 1, 2] + c * v[node, 2] + d * v[node + 1, 2],
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _sun(sky: Any, time_s: float) -> tuple[float, float, float]:
    """Earth-fixed position of the Sun, km."""
    part = time_s / sky[SPAN_S]
    x = sky[SUN_START] + part * (sky[SUN_END] - sky[SUN_START])
    y = sky[SUN_START + 1] + part * (sky[SUN_END + 1] - sky[SUN_START + 1])
    z = sky[SUN_START + 2] + part * (sky[SUN_END + 2] - sky[SUN_START + 2])
    angle = sky[ANGLE_RAD] + EARTH_ROTATION_RAD_S * time_s
    return math.cos(angle) * x + math.sin(angle) * y, math.cos(angle) * y - math.sin(angle) * x, z


@njit(cache=True, nogil=True, error_model="numpy")
def _moon(sky: Any, time_s: float) -> tuple[float, float, float]:
    """Earth-fixed position of the Moon, km."""
    row = min(max(int(time_s / MOON_STEP_S), 0), (len(sky) - SKY_TERMS) // 3 - 2)
    part, first = time_s / MOON_STEP_S - row, SKY_TERMS + 3 * row
    x = sky[first] + part * (sky[first + 3] - sky[first])
    y = sky[first + 1] + part * (sky[first + 4] - sky[first + 1])
    z = sky[first + 2] + part * (sky[first + 5] - sky[first + 2])
    angle = sky[ANGLE_RAD] + EARTH_ROTATION_RAD_S * time_s
    return math.cos(angle) * x + math.sin(angle) * y, math.cos(angle) * y - math.sin(angle) * x, z


@njit(cache=True, nogil=True, error_model="numpy")
def _from_moon(x: float, y: float, z: float, time_s: float, sensor: Any, sky: Any) -> float:
    """How far the object is from the Moon beyond the exclusion, or the Moon below the horizon: the larger one, rad."""
    moon_x, moon_y, moon_z = _moon(sky, time_s)
    dx, dy, dz = x - sensor[SITE], y - sensor[SITE + 1], z - sensor[SITE + 2]
    mx, my, mz = moon_x - sensor[SITE], moon_y - sensor[SITE + 1], moon_z - sensor[SITE + 2]
    moon_km = math.sqrt(mx * mx + my * my + mz * mz)
    height = (mx * sensor[UP] + my * sensor[UP + 1] + mz * sensor[UP + 2]) / moon_km
    cosine = (dx * mx + dy * my + dz * mz) / (math.sqrt(dx * dx + dy * dy + dz * dz) * moon_km)
    apart = math.acos(max(-1.0, min(1.0, cosine)))
    return max(apart - MOON_EXCLUSION_RAD, -math.asin(max(-1.0, min(1.0, height))))


@njit(cache=True, nogil=True, error_model="numpy")
def _at(condition: int, x: float, y: float, z: float, time_s: float, sensor: Any, sky: Any) -> float:
    """The condition's value for an object at Earth-fixed (x, y, z) km."""
    if condition <= RANGE:
        dx, dy, dz = x - sensor[SITE], y - sensor[SITE + 1], z - sensor[SITE + 2]
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        if condition == RANGE:
            return float(sensor[MAX_RANGE] - distance)
        return float(dx * sensor[UP] + dy * sensor[UP + 1] + dz * sensor[UP + 2] - distance * sensor[SIN_MASK])
    if condition == MOONLIGHT:
        return float(_from_moon(x, y, z, time_s, sensor, sky))
    sun_x, sun_y, sun_z = _sun(sky, time_s)
    if condition == DARKNESS:
        sun_km = math.sqrt(sun_x * sun_x + sun_y * sun_y + sun_z * sun_z)
        height = (sun_x * sensor[UP] + sun_y * sensor[UP + 1] + sun_z * sensor[UP + 2]) / sun_km
        return float(sensor[SIN_DARK] - height)
    # Full sunlight: the Sun's disc and the Earth's do not touch, as seen from the object (Montenbruck & Gill, 3.4.2).
    to_x, to_y, to_z = sun_x - x, sun_y - y, sun_z - z
    to_sun = math.sqrt(to_x * to_x + to_y * to_y + to_z * to_z)
    distance = math.sqrt(x * x + y * y + z * z)
    apart = math.acos(max(-1.0, min(1.0, -(x * to_x + y * to_y + z * to_z) / (distance * to_sun))))
    return apart - math.asin(SUN_RADIUS_KM / to_sun) - math.asin(min(1.0, WGS84_RADIUS_KM / distance))


@njit(cache=True, nogil=True, error_model="numpy")
def _value(condition: int, r: Any, v: Any, step_s: float, time_s: float, sensor: Any, sky: Any) -> float:
    x, y, z = _position(r, v, step_s, time_s)
    return float(_at(condition, x, y, z, time_s, sensor, sky))


@njit(cache=True, nogil=True, error_model="numpy")
def _slope(condition: int, r: Any, v: Any, step_s: float, time_s: float, sensor: Any, sky: Any) -> float:
    later = _value(condition, r, v, step_s, time_s + _SLOPE_S, sensor, sky)
    return float(later - _value(condition, r, v, step_s, time_s - _SLOPE_S, sensor, sky))


@njit(cache=True, nogil=True, error_model="numpy")
def _root(
    condition: int, r: Any, v: Any, step_s: float, low_s: float, high_s: float, rises: bool, sensor: Any, sky: Any
) -> float:
    """The instant between both at which the condition starts to hold (``rises``) or ceases to hold, s."""
    for _ in range(_ROOT_STEPS):
        middle = 0.5 * (low_s + high_s)
        if (_value(condition, r, v, step_s, middle, sensor, sky) > 0) == rises:
            high_s = middle
        else:
            low_s = middle
    return 0.5 * (low_s + high_s)


@njit(cache=True, nogil=True, error_model="numpy")
def _extremum(
    condition: int, r: Any, v: Any, step_s: float, low_s: float, high_s: float, sign: float, sensor: Any, sky: Any
) -> float:
    """The instant of the maximum (``sign`` 1) or minimum (-1) between two instants of opposite slope; else NaN."""
    low, high = low_s + _SLOPE_S, high_s - _SLOPE_S
    if not high > low:
        return math.nan
    if not sign * _slope(condition, r, v, step_s, low, sensor, sky) > 0:
        return math.nan
    if not sign * _slope(condition, r, v, step_s, high, sensor, sky) < 0:
        return math.nan
    for _ in range(_ROOT_STEPS // 2):
        middle = 0.5 * (low + high)
        if sign * _slope(condition, r, v, step_s, middle, sensor, sky) > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit(cache=True, nogil=True, error_model="numpy")
def _most_change(condition: int, v: Any, node: int, seconds: float, sensor: Any) -> float:
    """An upper bound of how much the condition's value changes within ``seconds`` of a node; infinite for angles."""
    if condition > RANGE:
        return math.inf
    speed = math.sqrt(v[node, 0] ** 2 + v[node, 1] ** 2 + v[node, 2] ** 2)
    return float(1.5 * speed * (1 + abs(sensor[SIN_MASK])) * seconds)


@njit(cache=True, nogil=True, error_model="numpy")
def _pieces(
    condition: int, r: Any, v: Any, step_s: float, from_s: float, upto_s: float, sensor: Any, sky: Any, out: Any
) -> int:
    """Write the intervals of [from, upto] in which the condition holds to ``out`` (k, 2); returns their number."""
    count, begin = 0, from_s
    node = int(from_s / step_s)
    x, y, z = _position(r, v, step_s, from_s)
    before = _at(condition, x, y, z, from_s, sensor, sky)
    low = from_s
    while low < upto_s and count < len(out):
        node += 1
        high = min(node * step_s, upto_s)
        if high <= low:
            continue
        if high == upto_s:
            x, y, z = _position(r, v, step_s, high)
        else:
            x, y, z = r[node, 0], r[node, 1], r[node, 2]
        after = _at(condition, x, y, z, high, sensor, sky)
        if before > 0 and after <= 0:
            out[count, 0], out[count, 1] = begin, _root(condition, r, v, step_s, low, high, False, sensor, sky)
            count += 1
        elif before <= 0 and after > 0:
            begin = _root(condition, r, v, step_s, low, high, True, sensor, sky)
        elif abs(before) + abs(after) < _most_change(condition, v, node - 1, high - low, sensor):
            sign = 1.0 if before <= 0 else -1.0
            top = _extremum(condition, r, v, step_s, low, high, sign, sensor, sky)
            if top >= 0 and sign * _value(condition, r, v, step_s, top, sensor, sky) > 0:
                first = _root(condition, r, v, step_s, low, top, sign > 0, sensor, sky)
                last = _root(condition, r, v, step_s, top, high, sign < 0, sensor, sky)
                out[count, 0], out[count, 1] = (first, last) if sign > 0 else (begin, first)
                begin = last
                count += 1
        before, low = after, high
    if before > 0 and count < len(out):
        out[count, 0], out[count, 1] = begin, upto_s
        count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _windows(r: Any, v: Any, step_s: float, upto_s: float, sensor: Any, sky: Any, out: Any) -> int:
    """Intervals in which every condition of the sensor holds, to ``out`` (k, 2); returns their number."""
    count = _pieces(ELEVATION, r, v, step_s, 0.0, upto_s, sensor, sky, out)
    last = MOONLIGHT if sensor[IS_OPTICAL] > 0 else RANGE
    kept, found = np.empty_like(out), np.empty_like(out)
    for condition in range(RANGE, last + 1):
        total = 0
        for row in range(count):
            more = _pieces(condition, r, v, step_s, out[row, 0], out[row, 1], sensor, sky, found)
            for piece in range(min(more, len(kept) - total)):
                kept[total, 0], kept[total, 1] = found[piece, 0], found[piece, 1]
                total += 1
        count = total
        out[:count] = kept[:count]
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _topocentric(r: Any, v: Any, step_s: float, time_s: float, sensor: Any) -> tuple[float, float, float]:
    """Azimuth from north by east [0, 2 pi) and elevation, rad, and range, km."""
    x, y, z = _position(r, v, step_s, time_s)
    dx, dy, dz = x - sensor[SITE], y - sensor[SITE + 1], z - sensor[SITE + 2]
    up = dx * sensor[UP] + dy * sensor[UP + 1] + dz * sensor[UP + 2]
    east = dx * sensor[EAST] + dy * sensor[EAST + 1] + dz * sensor[EAST + 2]
    north = dx * sensor[NORTH] + dy * sensor[NORTH + 1] + dz * sensor[NORTH + 2]
    return (
        math.atan2(east, north) % (2 * math.pi),
        math.atan2(up, math.hypot(east, north)),
        math.sqrt(dx * dx + dy * dy + dz * dz),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _culmination(r: Any, v: Any, step_s: float, rise_s: float, set_s: float, sensor: Any) -> float:
    """The instant of the greatest elevation in a window: the best node, refined by golden section and Newton steps.

    Elevation is flat at its top: its slope gives the instant to a nanosecond, its value to a tenth of a millisecond.
    """
    low, high, best, highest = rise_s, set_s, rise_s, -math.inf
    samples = max(8, int((set_s - rise_s) / step_s) + 1)
    width = (set_s - rise_s) / samples
    for sample in range(samples + 1):
        time_s = rise_s + sample * width
        elevation = _topocentric(r, v, step_s, time_s, sensor)[1]
        if elevation > highest:
            highest, best = elevation, time_s
    low, high = max(rise_s, best - width), min(set_s, best + width)
    one, two = low + _GOLDEN * (high - low), high - _GOLDEN * (high - low)
    at_one, at_two = (
        _topocentric(r, v, step_s, one, sensor)[1],
        _topocentric(r, v, step_s, two, sensor)[1],
    )
    while high - low > _TOP_S:
        if at_one > at_two:
            high, two, at_two = two, one, at_one
            one = low + _GOLDEN * (high - low)
            at_one = _topocentric(r, v, step_s, one, sensor)[1]
        else:
            low, one, at_one = one, two, at_two
            two = high - _GOLDEN * (high - low)
            at_two = _topocentric(r, v, step_s, two, sensor)[1]
    top = 0.5 * (low + high)
    if top - rise_s < _TOP_S or set_s - top < _TOP_S:
        return rise_s if top - rise_s < set_s - top else set_s
    for _ in range(_NEWTON_STEPS):
        at = _topocentric(r, v, step_s, top, sensor)[1]
        before = _topocentric(r, v, step_s, top - _TOP_S, sensor)[1]
        after = _topocentric(r, v, step_s, top + _TOP_S, sensor)[1]
        bend = before - 2 * at + after
        if bend < 0:
            top += min(max(0.5 * _TOP_S * (before - after) / bend, -_TOP_S), _TOP_S)
    return float(min(max(top, rise_s), set_s))


@njit(cache=True, nogil=True, error_model="numpy")
def search(r: Any, v: Any, step_s: float, upto_s: float, sensors: Any, sky: Any, pair: Any, found: Any) -> int:
    """Write every window of every object and sensor to ``pair`` (m, 2) and ``found`` (m, 8); returns their number.

    Args:
        r, v: (objects, nodes, 3) Earth-fixed positions km and velocities km/s at nodes of ``step_s``; an object with
            a number that is not finite has no window.
        upto_s: end of the search, seconds from the first node.
        sensors: (s, SENSOR_TERMS); sky: SKY_TERMS and the Moon's positions.
        pair: object and sensor of a window. found: rise, culmination, set (s); azimuth at each, greatest elevation
            (rad); range at culmination (km). What exceeds their length is counted, and not written.
    """
    count = 0
    out = np.empty((_MOST_PIECES, 2))
    for row in range(len(r)):
        if not (np.isfinite(r[row]).all() and np.isfinite(v[row]).all()):
            continue
        for column in range(len(sensors)):
            sensor = sensors[column]
            for piece in range(_windows(r[row], v[row], step_s, upto_s, sensor, sky, out)):
                if count < len(found):
                    rise_s, set_s = out[piece, 0], out[piece, 1]
                    top_s = _culmination(r[row], v[row], step_s, rise_s, set_s, sensor)
                    pair[count, 0], pair[count, 1] = row, column
                    found[count, 0], found[count, 1], found[count, 2] = rise_s, top_s, set_s
                    azimuth, elevation, range_km = _topocentric(r[row], v[row], step_s, top_s, sensor)
                    found[count, 3] = _topocentric(r[row], v[row], step_s, rise_s, sensor)[0]
                    found[count, 4], found[count, 6], found[count, 7] = azimuth, elevation, range_km
                    found[count, 5] = _topocentric(r[row], v[row], step_s, set_s, sensor)[0]
                count += 1
    return count
