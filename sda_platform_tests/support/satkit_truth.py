"""Truth of an independent implementation: satkit, which `make setup-test` installs where there is a wheel of it.

It has its own field (ITU GRACE 2016, degree 60), tides, ephemerides (JPL DE440), density (NRLMSISE-00 with observed
space weather) and integrator. Without it, ``AVAILABLE`` is false.
"""

import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import astropy_iers_data
import numpy as np

from sda_platform.arrays import FloatArray, IntArray

AVAILABLE = find_spec("satkit") is not None and find_spec("satkit_data") is not None
WHY_NOT = "satkit and satkit-data are not installed"


@dataclass(frozen=True)
class Areas:
    """Areas over mass, times drag and radiation coefficients, m2/kg."""

    drag_m2_kg: float = 0.0
    reflective_m2_kg: float = 0.0


@cache
def _satkit() -> Any:
    """The module with its data: those of satkit-data, and the Earth orientation that the platform uses."""
    import satkit
    import satkit_data

    folder = Path(tempfile.mkdtemp(prefix="satkit-data-"))
    for path in (Path(str(satkit_data.__file__)).parent / "data").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "finals2000A.all").symlink_to(Path(str(astropy_iers_data.IERS_A_FILE)))
    satkit.utils.set_datadir(str(folder))
    return satkit


def weather_file() -> Path:
    """The space weather that satkit uses, in the form of the platform's setting."""
    return Path(_satkit().utils.datadir()) / "SW-All.csv"


def _time(time_ns: int) -> Any:
    satkit = _satkit()
    day, rest = divmod(time_ns, 86_400 * 10**9)
    date = np.datetime64(day, "D").astype(object)
    return satkit.time(date.year, date.month, date.day) + satkit.duration.from_seconds(rest / 1e9)


def propagated(
    start: FloatArray,
    epoch_ns: int,
    time_ns: IntArray,
    *,
    gravity: str = "itugrace16",
    degree: int = 60,
    areas: Areas = Areas(),
) -> FloatArray:
    """States (n, 6), GCRF, km and km/s, at ``time_ns`` (n,), ascending and not before ``epoch_ns``."""
    satkit = _satkit()
    settings = satkit.propsettings()
    settings.gravity_model, settings.gravity_degree = getattr(satkit.gravmodel, gravity), degree
    settings.gravity_order = degree
    settings.abs_error, settings.rel_error = 1e-5, 1e-11
    body = satkit.satproperties(cdaoverm=areas.drag_m2_kg, craoverm=areas.reflective_m2_kg)
    begin, end = _time(epoch_ns), _time(int(time_ns[-1]))
    found = satkit.propagate(start * 1e3, begin, end=end, propsettings=settings, satproperties=body)
    if len(time_ns) == 1:
        return np.asarray(found.state)[None] / 1e3
    return np.array([np.asarray(found.interp(_time(int(at)))) for at in time_ns]) / 1e3
