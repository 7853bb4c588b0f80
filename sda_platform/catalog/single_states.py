"""Single states as ephemerides: one state (OPM, or an OEM of one) is propagated for a day by the numerical model.

The model is that of tracks, with the usual space weather, so that the bytes of a message alone determine its path. Drag
and sunlight follow from the message's areas, coefficients and mass, else from those of a usual satellite.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.clock import iso
from sda_platform.formats.errors import RecordError
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.units import SECOND_NS

# Keywords whose product over the mass is a coefficient of the model: drag, then sunlight.
_AREAS: Final = (("DRAG_AREA", "DRAG_COEFF"), ("SOLAR_RAD_AREA", "SOLAR_RAD_COEFF"))
_LARGEST_M2_KG: Final = 100.0
"""More than any foil in orbit has."""


def propagated(epoch_ns: int, state: FloatArray, covariance: FloatArray, spacecraft: Mapping[str, str]) -> Ephemeris:
    """Return the path for a day from a state (6,) with its covariance (6, 6), TEME, km and km/s.

    ``spacecraft``: values of the message by keyword. Raises RecordError for an orbit that meets the ground.
    """
    # These load the compiled model, which files without single states do not need.
    from sda_platform.orbits.determination.track_elements import NoFit
    from sda_platform.orbits.determination.track_ephemerides import ephemeris_of_orbit
    from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
    from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients, orbits_of_teme

    coefficients, spread = first_coefficients(np.zeros(1))
    mass_kg = float(spacecraft.get("MASS") or 0.0)
    for column, names in enumerate(_AREAS):
        if mass_kg > 0 and all(spacecraft.get(name) for name in names):
            area_m2, factor = (float(spacecraft[name]) for name in names)
            coefficients[0, column] = area_m2 * factor / mass_kg
            if not 0 <= coefficients[0, column] <= _LARGEST_M2_KG:
                raise RecordError(
                    "out_of_range",
                    f"{names[0]} * {names[1]} / MASS is {coefficients[0, column]:g} m**2/kg, must be at least 0 and at "
                    f"most {_LARGEST_M2_KG:g}",
                )
    whole = np.zeros((1, 8, 8))
    whole[0, :6, :6], whole[0, 6:, 6:] = covariance, spread[0]
    try:
        orbit = orbits_of_teme(np.array([epoch_ns], np.int64), state[None], coefficients, whole)
        return ephemeris_of_orbit(orbit, CONSTANT_DYNAMICS)
    except NoFit as error:
        raise RecordError(
            "out_of_range", f"it is a single state, and cannot be propagated for a day: {error}"
        ) from None


def coast_until_ns(epoch_ns: int, burns_ns: Sequence[tuple[int, int]]) -> int | None:
    """Find when the first manoeuvre after the epoch begins, from ignitions and ends; None: there is none.

    Raises RecordError where that leaves nothing of the path.
    """
    ahead = [ignition_ns for ignition_ns, end_ns in burns_ns if max(ignition_ns, end_ns - 1) >= epoch_ns]
    if ahead and min(ahead) <= epoch_ns + SECOND_NS:
        raise RecordError(
            "out_of_range",
            f"its manoeuvre begins at {iso(min(ahead))}, and manoeuvres are not applied: nothing of its path is left; "
            "send a state after the manoeuvre, or an ephemeris (OEM)",
        )
    return min(ahead, default=None)
