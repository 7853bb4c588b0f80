"""What Orekit reads from files of messages, as JSON; a program of its own, because a JVM lives in its process.

    python -m sda_platform_tests.support.orekit_reader FOLDER

A file's name begins with its kind: oem, ocm, omm, opm, cdm, tdm, tle. Times are ns of TAI from 2000-01-01T00:00:00 UTC;
all else is in SI units.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from sda_platform.formats.time_systems import leap_second_ends_ns, utc_to_tai_ns

_java: Any = import_module("jpype")  # its type stubs lack what is used here
JClass, JException, JImplements, JOverride = _java.JClass, _java.JException, _java.JImplements, _java.JOverride
_MU_M3_S2 = 3.986004418e14
_PLANETS = "Sun Mercury Venus EarthMoonBarycenter Earth Moon Mars Jupiter Saturn Uranus Neptune Pluto"


def parsers(folder: Path) -> Any:
    """Start the JVM; returns a builder of parsers that has leap seconds, and bodies by name only."""
    import_module("orekit_jpype").initVM()
    (folder / "tai-utc.dat").write_text("".join(_leap_seconds()))
    usual = JClass("org.orekit.data.DataContext").getDefault()
    crawler = JClass("org.orekit.data.DirectoryCrawler")(JClass("java.io.File")(str(folder)))
    usual.getDataProvidersManager().addProvider(crawler)

    def body(name: str) -> Any:
        return _proxy("bodies.CelestialBody", getName=lambda: name, getGM=lambda: _MU_M3_S2)

    named: dict[str, Callable[..., Any]] = {
        f"get{name}": lambda name=name: body(name) for name in [*_PLANETS.split(), "SolarSystemBarycenter"]
    }
    bodies = _proxy("bodies.CelestialBodies", getBody=lambda name: body(str(name)), **named)
    known = usual.getFrames()
    # The parser of OCM asks for the frame of the barycentre, which needs ephemerides of planets, and uses it for none.
    frames = _proxy("frames.Frames", **{**_methods("frames.Frames", known), "getICRF": known.getGCRF})
    context = _proxy(
        "data.DataContext",
        getTimeScales=usual.getTimeScales,
        getFrames=lambda: frames,
        getCelestialBodies=lambda: bodies,
    )
    return JClass("org.orekit.files.ccsds.ndm.ParserBuilder")(context).withMu(_MU_M3_S2).withDefaultMass(1000.0)


def _proxy(interface: str, **methods: Callable[..., Any]) -> Any:
    """An object with this interface of Orekit; other methods than these are not asked."""
    name = f"org.orekit.{interface}"

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(name)

    def bound(call: Callable[..., Any]) -> Any:
        return JOverride(lambda self, *arguments: call(*arguments))

    abstract = {str(each.getName()) for each in JClass(name).class_.getMethods() if not each.isDefault()}
    members = {each: bound(methods.get(each, refuse)) for each in abstract | methods.keys()}
    return JImplements(name)(type("Proxy", (), members))()


def _methods(interface: str, of: Any) -> dict[str, Callable[..., Any]]:
    """The methods of an interface, as an object has them."""
    names = {str(each.getName()) for each in JClass(f"org.orekit.{interface}").class_.getMethods()}
    return {name: getattr(of, name) for name in names}


def _leap_seconds() -> list[str]:
    """The platform's own table, in the form of the USNO."""
    starts = [63_072_000 * 10**9, *sorted(leap_second_ends_ns())]
    lines = []
    for start_ns in starts:
        first = datetime.fromtimestamp(start_ns / 1e9, UTC)
        offset_s = (int(utc_to_tai_ns(start_ns)) - start_ns) / 1e9
        day = f"{first:%Y %b} {first.day:2}".upper()
        julian = start_ns / 86_400e9 + 2_440_587.5
        lines.append(f" {day} =JD {julian:.1f}  TAI-UTC= {offset_s:10.7f} S + (MJD - 41317.) X 0.0      S\n")
    return lines


class Reader:
    """Reads files, once the JVM runs."""

    def __init__(self, folder: Path) -> None:
        self._builder = parsers(folder)
        utc = JClass("org.orekit.time.TimeScalesFactory").getUTC()
        self._first = JClass("org.orekit.time.AbsoluteDate")(2000, 1, 1, utc)

    def read(self, path: Path) -> Any:
        """What the file holds, or the reason for which it cannot be read, as text."""
        kind = path.name[:3]
        try:
            if kind == "tle":
                return self._tle(path)
            source = JClass("org.orekit.data.DataSource")(str(path))
            message = getattr(self._builder, f"build{kind.capitalize()}Parser")().parseMessage(source)
            return getattr(self, f"_{kind}")(message)
        except JException as error:
            return str(error)

    def _ns(self, date: Any) -> int:
        offset = date.accurateDurationFrom(self._first)
        return int(offset.getSeconds()) * 10**9 + round(int(offset.getAttoSeconds()) / 10**9)

    def _oem(self, message: Any) -> list[Any]:
        return [
            {
                "object": str(segment.getMetadata().getObjectID()),
                "frame": str(segment.getMetadata().getReferenceFrame().getName()),
                "states": [
                    [self._ns(each.getDate()), *_numbers(each.getPosition()), *_numbers(each.getVelocity())]
                    for each in segment.getData().getEphemeridesDataLines()
                ],
                "covariances": [
                    [self._ns(each.getEpoch()), str(each.getReferenceFrame().getName()), _lower(each)]
                    for each in segment.getData().getCovarianceMatrices()
                ],
            }
            for segment in message.getSegments()
        ]

    def _ocm(self, message: Any) -> dict[str, Any]:
        metadata, data = message.getMetadata(), message.getData()

        def row(state: Any) -> list[Any]:
            return [self._ns(state.getDate()), *(float(each) for each in state.getElements())]

        return {
            "object": str(metadata.getObjectDesignator()),
            "designator": str(metadata.getInternationalDesignator()),
            "trajectories": [
                [str(block.getMetadata().getTrajReferenceFrame().getName()), [*map(row, block.getTrajectoryStates())]]
                for block in data.getTrajectoryBlocks()
            ],
            "covariances": [
                [
                    str(block.getMetadata().getCovReferenceFrame().getName()),
                    [[self._ns(each.getDate()), _triangle(each.getMatrix())] for each in block.getCovariances()],
                ]
                for block in data.getCovarianceBlocks()
            ],
        }

    def _opm(self, message: Any) -> dict[str, Any]:
        data = message.getData()
        state, covariance = data.getStateVectorBlock(), data.getCovarianceBlock()
        at = state.toTimeStampedPVCoordinates()
        spacecraft = data.getSpacecraftParametersBlock()
        return {
            "object": str(message.getMetadata().getObjectID()),
            "frame": str(message.getMetadata().getReferenceFrame().getName()),
            "epoch": self._ns(state.getEpoch()),
            "state": [*_numbers(at.getPosition()), *_numbers(at.getVelocity())],
            "covariance": None if covariance is None else _lower(covariance),
            "mass": None if spacecraft is None else float(spacecraft.getMass()),
            "manoeuvres": [
                [self._ns(each.getEpochIgnition()), float(each.getDuration()), *_numbers(each.getDV())]
                for each in data.getManeuvers()
            ],
        }

    def _omm(self, message: Any) -> dict[str, Any]:
        elements, tle = message.getData().getKeplerianElementsBlock(), message.getData().getTLEBlock()
        return {
            "name": str(message.getMetadata().getObjectName()),
            "object": str(message.getMetadata().getObjectID()),
            "epoch": self._ns(elements.getEpoch()),
            "elements": [float(getattr(elements, f"get{name}")()) for name in
                         ("MeanMotion", "E", "I", "Raan", "Pa", "Anomaly")],
            "norad_id": int(tle.getNoradID()),
            "bstar": float(tle.getBStar()),
            "mean_motion_dot": float(tle.getMeanMotionDot()),
            "revolution": int(tle.getRevAtEpoch()),
            "number": int(tle.getElementSetNumber()),
        }  # fmt: skip

    def _tle(self, path: Path) -> dict[str, Any]:
        first, second = path.read_text().splitlines()[-2:]
        tle = JClass("org.orekit.propagation.analytical.tle.TLE")(first, second)
        return {
            "epoch": self._ns(tle.getDate()),
            "elements": [float(getattr(tle, f"get{name}")()) for name in
                         ("MeanMotion", "E", "I", "Raan", "PerigeeArgument", "MeanAnomaly")],
            "norad_id": int(tle.getSatelliteNumber()),
            "bstar": float(tle.getBStar()),
            "revolution": int(tle.getRevolutionNumberAtEpoch()),
            "number": int(tle.getElementNumber()),
        }  # fmt: skip

    def _cdm(self, message: Any) -> dict[str, Any]:
        relative = message.getRelativeMetadata()
        return {
            "tca": self._ns(relative.getTca()),
            "miss": float(relative.getMissDistance()),
            "pc": float(relative.getCollisionProbability()),
            "speed": float(relative.getRelativeSpeed()),
            "objects": [
                {
                    "designator": str(segment.getMetadata().getObjectDesignator()),
                    "frame": str(segment.getMetadata().getRefFrame().getName()),
                    "state": [
                        *_numbers(segment.getData().getStateVectorBlock().getPositionVector()),
                        *_numbers(segment.getData().getStateVectorBlock().getVelocityVector()),
                    ],
                    "covariance": _triangle(segment.getData().getRTNCovarianceBlock().getRTNCovarianceMatrix()),
                }
                for segment in message.getSegments()
            ],
        }

    def _tdm(self, message: Any) -> list[Any]:
        return [
            {
                "participants": [str(name) for name in segment.getMetadata().getParticipants().values()],
                "measured": [
                    [str(each.getType().name()), self._ns(each.getEpoch()), float(each.getMeasurement())]
                    for each in segment.getData().getObservations()
                ],
            }
            for segment in message.getSegments()
        ]


def _numbers(vector: Any) -> list[float]:
    return [float(vector.getX()), float(vector.getY()), float(vector.getZ())]


def _lower(covariance: Any) -> list[float]:
    return _triangle(covariance.getCovarianceMatrix())


def _triangle(matrix: Any) -> list[float]:
    return [float(matrix.getEntry(row, column)) for row in range(6) for column in range(row + 1)]


def main() -> None:
    """Print what the files of a folder hold, by name."""
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder))
        print(json.dumps({path.name: reader.read(path) for path in sorted(Path(sys.argv[1]).iterdir())}))  # noqa: T201


if __name__ == "__main__":
    main()
