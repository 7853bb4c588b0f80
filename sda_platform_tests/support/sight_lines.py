"""Directions in which a sensor sees an object, in the frames of others."""

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform_tests.support.scenes import place

LIGHT_KM_S = 299_792.458


def seen_by(site: FloatArray, truth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Line of sight (n, 3), GCRF, half the path of a pulse, range rate and the object's velocity; by light time."""
    delay = np.zeros((len(site), 1))
    gravity = -398600.4418 * truth[:, :3] / np.linalg.norm(truth[:, :3], axis=1, keepdims=True) ** 3
    for _ in range(4):
        line = truth[:, :3] - truth[:, 3:] * delay + 0.5 * gravity * delay**2 - site[:, :3]
        delay = np.linalg.norm(line, axis=1, keepdims=True) / LIGHT_KM_S
    speed = truth[:, 3:] - gravity * delay
    up = np.linalg.norm(line + 2 * delay * site[:, 3:], axis=1)
    rate = np.einsum("ni,ni->n", line, speed - site[:, 3:]) / np.linalg.norm(line, axis=1)
    return line, 0.5 * (np.linalg.norm(line, axis=1) + up), rate, speed


def angles(direction: FloatArray) -> tuple[FloatArray, FloatArray]:
    length = np.linalg.norm(direction, axis=1)
    return np.arctan2(direction[:, 1], direction[:, 0]) % (2 * np.pi), np.arcsin(direction[:, 2] / length)


def enu_of_itrf(sensor: Sensor, to_itrf: FloatArray, line: FloatArray) -> FloatArray:
    """East, north and up (3, n) of lines of sight (n, 3), GCRF, at a sensor's site."""
    latitude, longitude = np.radians(place(sensor)[:2])
    axes = np.array(
        [
            [-np.sin(longitude), np.cos(longitude), 0],
            [-np.sin(latitude) * np.cos(longitude), -np.sin(latitude) * np.sin(longitude), np.cos(latitude)],
            [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)],
        ]
    )
    return np.asarray(np.einsum("ij,njk,nk->in", axes, to_itrf, line))
