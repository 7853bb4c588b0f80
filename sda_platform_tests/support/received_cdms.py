"""Builders of conjunction data messages as others send them: states at TCA, covariances, and what they state."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sda_platform.formats.cdm import Cdm, CdmObject, Encoding
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.cutting import pack_segment
from sda_platform.formats.instants import format_epoch
from sda_platform_tests.support.segments import START_NS, after

_SPEED_KM_S = 7.546


@dataclass(frozen=True)
class Told:
    """A message about two objects that cross at right angles, one ``miss_km`` above the other."""

    pair: tuple[object, object] = (25544, 270387)
    tca_ns: int = after(7200)
    miss_km: float = 0.2
    sigma_km: float = 0.1
    stated: float | None = None
    originator: str = "18 SDS"
    created_ns: int | None = START_NS
    frames: tuple[str, str] = ("EME2000", "EME2000")

    def cdm(self) -> Cdm:
        """The message; sigmas along the track are ten times those across it."""
        fields = {
            "ORIGINATOR": self.originator,
            "MESSAGE_ID": f"{self.pair[0]}-{self.pair[1]}-{self.created_ns}",
            "TCA": format_epoch(self.tca_ns),
            "MISS_DISTANCE": f"{1000 * self.miss_km:.3f}",
        }
        if self.created_ns is not None:
            fields["CREATION_DATE"] = format_epoch(self.created_ns)
        if self.stated is not None:
            fields |= {"COLLISION_PROBABILITY": repr(self.stated), "COLLISION_PROBABILITY_METHOD": "FOSTER-1992"}
        sigma = np.array([self.sigma_km, 10 * self.sigma_km, self.sigma_km, 1e-3, 1e-4, 1e-4])
        velocities = np.eye(3)[1:] * _SPEED_KM_S
        positions = np.array([[7000.0, 0, 0], [7000.0 + self.miss_km, 0, 0]])
        objects = [
            CdmObject(
                {"OBJECT": f"OBJECT{n + 1}", "OBJECT_DESIGNATOR": str(self.pair[n]), "OBJECT_NAME": f"OBJECT {n + 1}"},
                self.frames[n],
                positions[n],
                velocities[n],
                np.diag(sigma**2),
            )
            for n in (0, 1)
        ]
        return Cdm(fields, self.tca_ns, 1000 * self.miss_km, (objects[0], objects[1]), 10.0, ("HBR = 10 [m]",))


def messages_of(messages: Iterable[Told], encoding: Encoding = "kvn") -> bytes:
    """A segment of the format ``cdm-kvn`` or ``cdm-xml`` with these messages."""
    texts = [encode_cdm(told.cdm(), encoding).rpartition(b"?>")[2].strip() for told in messages]
    return pack_segment(texts, [], f"cdm-{encoding}")
