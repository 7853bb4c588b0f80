"""The story of `sda demo`: a satellite, a fragment on a collision course, and how an operator avoids it.

A fragment is catalogued three minutes after the sensors begin to observe. It will pass the satellite within metres.
Another centre's message states a much smaller probability. A radar is silent for a quarter of an hour. Then the
satellite manoeuvres.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.formats.cdm import Cdm, CdmObject
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.instants import format_epoch
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.simulation.reference import reference_elements
from sda_platform.simulation.scenarios import Incidents, Manoeuvre, Newcomer, Outage, file_segment
from sda_platform.simulation.sky import Sky
from sda_platform.units import MINUTE_NS

SATELLITE: Final = 41335
_SATELLITE_NAME: Final = "SENTINEL-3A"
FRAGMENT: Final = 910_001
OTHER_CENTRE: Final = "OTHER CENTRE"
_FRAGMENT_NAME: Final = "DEMO FRAGMENT"
_FRAGMENT_DRAG: Final = 2e-4
_CROSSING_RAD: Final = np.radians(70.0)
SILENT_RADAR: Final = "radar-1"
UNOBSERVED: Final = (49954, 58354)
"""IXPE and STARLINK-30832, which really come within 3 km of each other at 02:20:56.

While only one of them is observed, the probability passes the red level by chance, and the story has one red alert.
"""
_MISS_KM: Final = 0.015
# What the other centre states: the fragment higher, and sigmas (radial, in-track, cross-track).
_OTHER_HEIGHT_KM: Final = 0.6
_OTHER_SIGMA_KM: Final = (0.1, 0.5, 0.1)


@dataclass(frozen=True)
class Story:
    """When the chapters happen, in minutes after the simulated sensors begin to observe; the arguments decide the rest.

    Attributes:
        begin_ns: when the sensors begin, ns since the Unix epoch.
        truth_from_ns: the world's, see `simulate`.
        seed: the world's.
        catalogue_error_s: the world's, see `ObservingPlan`.
        burn_m_s: how much the satellite changes its speed along its path.
    """

    begin_ns: int
    truth_from_ns: int
    seed: int
    catalogue_error_s: float
    catalogued_min: float = 3.0
    message_min: float = 6.0
    silent_min: tuple[float, float] = (10.0, 25.0)
    burn_min: float = 35.0
    encounter_min: float = 130.0
    burn_m_s: float = 0.5

    @property
    def incidents(self) -> Incidents:
        """Return the incidents of the story, for `simulate`."""
        begin, end = (self.at(minutes) for minutes in self.silent_min)
        catalogued, message = self.at(self.catalogued_min), self.at(self.message_min)
        return Incidents(
            manoeuvres=(Manoeuvre(SATELLITE, self.at(self.burn_min), (0.0, self.burn_m_s, 0.0)),),
            outages=(Outage(SILENT_RADAR, begin, end),),
            newcomers=(Newcomer(self._fragment_set(catalogued), catalogued),),
            arrivals=(file_segment(self._message(message), "messages", "cdm-kvn", message),),
        )

    def at(self, minutes: float) -> int:
        """Return the time of a chapter, ns since the Unix epoch; a whole second, as element sets give it."""
        return (self.begin_ns + round(minutes * MINUTE_NS)) // 1_000_000_000 * 1_000_000_000

    @property
    def chapters(self) -> tuple[tuple[int, str], ...]:
        """Describe what happens when, in order, for people."""
        begin, end = self.silent_min
        return (
            (self.at(self.catalogued_min), f"a fragment, {FRAGMENT}, is catalogued: it will meet {_SATELLITE_NAME}"),
            (self.at(self.message_min), f"a message of another centre states a smaller probability for {FRAGMENT}"),
            (self.at(begin), f"the link of {SILENT_RADAR} fails"),
            (self.at(end), f"the link of {SILENT_RADAR} is up again"),
            (self.at(self.burn_min), f"{_SATELLITE_NAME} manoeuvres by {self.burn_m_s:g} m/s to avoid the fragment"),
        )

    @property
    def encounter_ns(self) -> int:
        """Compute when the fragment comes nearest if the satellite does not manoeuvre, ns."""
        return self.at(self.encounter_min)

    @cached_property
    def _encounter(self) -> tuple[FloatArray, FloatArray]:
        """States (6,) at the encounter of the satellite and the fragment, TEME, km and km/s."""
        sky = Sky.of_catalogue(
            reference_elements(),
            objects=[SATELLITE],
            seed=self.seed,
            catalogue_error_s=self.catalogue_error_s,
            start_time_ns=self.truth_from_ns,
        )
        _, r, v = sky.states(np.array([0]), np.array([self.encounter_ns]))
        radial, along, normal = rtn_basis(r, v)[0]
        velocity = (v[0] @ radial) * radial
        across = v[0] @ along
        velocity = velocity + across * (np.cos(_CROSSING_RAD) * along + np.sin(_CROSSING_RAD) * normal)
        return np.hstack([r[0], v[0]]), np.hstack([r[0] + _MISS_KM * radial, velocity])

    def _fragment_set(self, epoch_ns: int) -> ElementSet:
        """Return the element set whose truth, from its epoch on, leads to the encounter."""
        _, fragment = self._encounter
        last = gcrf_of_teme(fragment[None], np.array([self.encounter_ns]))
        area = first_coefficients(np.array([_FRAGMENT_DRAG]))[0]
        found = CONSTANT_DYNAMICS.states(last, area, np.array([self.encounter_ns]), np.array([[epoch_ns]]))[:, 0]
        first = teme_of_gcrf(found, np.array([epoch_ns]))
        mean = mean_elements(first[:, :3], first[:, 3:], epoch_ns, _FRAGMENT_DRAG)
        return ElementSet(
            norad_id=FRAGMENT,
            object_name=_FRAGMENT_NAME,
            international_designator=None,
            epoch_time_ns=epoch_ns,
            mean_motion_rev_per_day=float(mean.mean_motion_rev_per_day[0]),
            eccentricity=float(mean.eccentricity[0]),
            inclination_deg=float(mean.inclination_deg[0]),
            raan_deg=float(mean.raan_deg[0]),
            arg_of_pericenter_deg=float(mean.arg_of_pericenter_deg[0]),
            mean_anomaly_deg=float(mean.mean_anomaly_deg[0]),
            bstar_per_earth_radius=_FRAGMENT_DRAG,
            mean_motion_dot_rev_per_day2=0.0,
            mean_motion_ddot_rev_per_day3=0.0,
            element_set_number=1,
        )

    def _message(self, created_ns: int) -> bytes:
        """Return the conjunction data message of the other centre, which has the fragment at another place."""
        satellite, fragment = self._encounter
        higher = _OTHER_HEIGHT_KM * fragment[:3] / np.linalg.norm(fragment[:3])
        both = np.stack([satellite, fragment + np.append(higher, np.zeros(3))])
        satellite, elsewhere = gcrf_of_teme(both, np.array([self.encounter_ns, self.encounter_ns]))
        covariance = np.diag(np.array([*_OTHER_SIGMA_KM, 1e-3, 1e-4, 1e-4]) ** 2)
        miss_m = 1e3 * float(np.linalg.norm(elsewhere[:3] - satellite[:3]))
        objects = [
            CdmObject(
                {"OBJECT": f"OBJECT{place}", "OBJECT_DESIGNATOR": str(number), "OBJECT_NAME": name},
                "GCRF",
                state[:3],
                state[3:],
                covariance,
            )
            for place, number, name, state in (
                (1, SATELLITE, _SATELLITE_NAME, satellite),
                (2, FRAGMENT, _FRAGMENT_NAME, elsewhere),
            )
        ]
        fields = {
            "ORIGINATOR": OTHER_CENTRE,
            "CREATION_DATE": format_epoch(created_ns),
            "MESSAGE_ID": f"{SATELLITE}-{FRAGMENT}",
            "TCA": format_epoch(self.encounter_ns),
            "MISS_DISTANCE": f"{miss_m:.3f}",
        }
        return encode_cdm(Cdm(fields, self.encounter_ns, miss_m, (objects[0], objects[1]), 10.0), "kvn")
