"""What the columns of a sensor's own CSV mean: a mapping, which a person writes in TOML and which lands with the file.

A mapping gives each quantity of an observation a column with its unit, or a constant. `mapped_csv` reads by it.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.column_times import TIME_FORMATS, is_pattern
from sda_platform.formats.column_values import is_unit_of
from sda_platform.formats.isl import CLOCK_KINDS
from sda_platform.formats.time_systems import CONVERTED_TIME_SYSTEMS

WHITESPACE: Final = "whitespace"
Quantity = Literal[
    "range",
    "range_rate",
    "azimuth",
    "elevation",
    "right_ascension",
    "declination",
    "range_sigma",
    "range_rate_sigma",
    "angle_sigma",
    "clock_age",
    "observer_x",
    "observer_y",
    "observer_z",
    "observer_vx",
    "observer_vy",
    "observer_vz",
    "observer_sigma",
]
UNITS: Final[dict[Quantity, str]] = {
    "range": "km",
    "range_rate": "km/s",
    "azimuth": "deg",
    "elevation": "deg",
    "right_ascension": "deg",
    "declination": "deg",
    "range_sigma": "m",
    "range_rate_sigma": "m/s",
    "angle_sigma": "rad",
    "clock_age": "s",
    "observer_x": "m",
    "observer_y": "m",
    "observer_z": "m",
    "observer_vx": "m/s",
    "observer_vy": "m/s",
    "observer_vz": "m/s",
    "observer_sigma": "m",
}
"""Of each quantity the unit in which it is kept."""
_OF_A_RADAR: Final = frozenset({"range", "azimuth", "elevation"})
_OF_A_TELESCOPE: Final = frozenset({"right_ascension", "declination"})
OF_AN_OBSERVER: Final[tuple[Quantity, ...]] = tuple(name for name in UNITS if name.startswith("observer_"))
"""Where an orbiting telescope was, in the frame of its angles, and the error of each component of its position."""
_ALLOWED: Final = {
    "frame": ANGLE_REFERENCES["angle_frame"],
    "aberration": ANGLE_REFERENCES["angle_aberration"],
    "refraction": ANGLE_REFERENCES["angle_refraction"],
    "clock_quality": CLOCK_KINDS,
}
# A mapping may come with a partner's file: it costs no more than its lines.
_Word = Annotated[str, Field(max_length=200)]
Column = _Word | Annotated[int, Field(ge=1, le=10_000)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnSource(_Model):
    """Where a value comes from: a column of the file, by name or number (from 1), or a constant."""

    column: Column | None = None
    value: _Word | float | None = None
    unit: _Word = ""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.column is None) == (self.value is None):
            raise ValueError("give either a column or a value")
        return self


def _as_table(value: Any) -> Any:
    return value if isinstance(value, dict | ColumnSource) else {"value": value}


Text = Annotated[ColumnSource, BeforeValidator(_as_table)]


class TimeSource(_Model):
    """Where the time of an observation comes from; several columns are joined by a blank."""

    column: Column | Annotated[tuple[Column, ...], Field(max_length=8)]
    format: _Word
    system: Literal[CONVERTED_TIME_SYSTEMS] = "UTC"  # type: ignore[valid-type]
    refers_to: Literal["receive", "transmit", "object"] = "receive"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the time, in order."""
        return self.column if isinstance(self.column, tuple) else (self.column,)

    @model_validator(mode="after")
    def _has_a_format(self) -> Self:
        if self.format not in TIME_FORMATS and not is_pattern(self.format):
            raise ValueError(f"format is {self.format!r}, must be {', '.join(TIME_FORMATS)}, or a pattern with %")
        return self


class ColumnMapping(_Model):
    """A mapping. ``mapping`` is the name of its file, which messages state; its other options are those of the TOML."""

    mapping: _Word = ""
    files: _Word = "*"
    separator: str = Field(",", min_length=1)
    decimal: Literal[".", ","] = "."
    header: bool = True
    skip_lines: int = Field(0, ge=0, le=1000)
    comment: _Word = ""
    missing: Annotated[tuple[_Word, ...], Field(max_length=100)] = ()
    time: TimeSource
    sensor: Text
    object: Text = ColumnSource(value="UNKNOWN")
    track: Text | None = None
    frame: Text | None = None
    aberration: Text | None = None
    refraction: Text | None = None
    clock_quality: Text | None = None
    fields: dict[Quantity, ColumnSource]

    @property
    def is_of_a_radar(self) -> bool:
        """Whether it maps range, azimuth and elevation; else right ascension and declination."""
        return "range" in self.fields

    def columns(self) -> list[Column]:
        """Return every column that the mapping names."""
        texts = (self.sensor, self.object, self.track, self.frame, self.aberration, self.refraction, self.clock_quality)
        sources = [each for each in (*texts, *self.fields.values()) if each is not None]
        return [*self.time.columns, *(each.column for each in sources if each.column is not None)]

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if len(self.separator) != 1 and self.separator != WHITESPACE:
            raise ValueError(f"separator is {self.separator!r}, must be one character or {WHITESPACE!r}")
        if self.decimal == self.separator:
            raise ValueError("separator and decimal are the same character")
        named = [each for each in self.columns() if isinstance(each, str)]
        if not self.header and named:
            raise ValueError(f"column {named[0]!r} has a name, but the file has no header: give its number, from 1")
        if not self.header and self.files == "*":
            raise ValueError('without a header, files must state which files it is for, such as files = "radar-*.csv"')
        for quantity, source in self.fields.items():
            if not is_unit_of(source.unit, UNITS[quantity]):
                raise ValueError(f"fields.{quantity}: unit is {source.unit!r}, must be one of {UNITS[quantity]!r}")
            if source.column is None and not isinstance(source.value, int | float):
                raise ValueError(f"fields.{quantity}: value is {source.value!r}, must be a number")
        for name, allowed in _ALLOWED.items():
            text = getattr(self, name)
            if text is not None and text.column is None and text.value not in allowed:
                raise ValueError(f"{name} is {text.value!r}, must be one of {', '.join(allowed)}")
        self._require_kind()
        return self

    def _require_kind(self) -> None:
        given = self.fields.keys()
        radar, telescope = _OF_A_RADAR & given, _OF_A_TELESCOPE & given
        needed = _OF_A_RADAR if radar else _OF_A_TELESCOPE
        if radar and telescope:
            raise ValueError(f"fields mixes {', '.join(sorted(radar))} with {', '.join(sorted(telescope))}")
        if absent := sorted(needed - given):
            raise ValueError(
                f"fields lacks {', '.join(absent)}: a radar has range, azimuth and elevation, a telescope "
                "right_ascension and declination"
            )
        own = {"range_rate", "range_sigma", "range_rate_sigma"} & given if telescope else {"angle_sigma"} & given
        if own:
            raise ValueError(f"fields.{min(own)} is not used of this kind of sensor; the list of sensors has its noise")
        observer = set(OF_AN_OBSERVER) & given
        if observer and (radar or (absent := sorted({*OF_AN_OBSERVER, "angle_sigma"} - given))):
            what = "an observer is of a telescope, not of a radar" if radar else f"fields lacks {', '.join(absent)}"
            raise ValueError(f"{what}: a telescope in orbit has {', '.join(OF_AN_OBSERVER)} and angle_sigma")
        if telescope and self.frame is None:
            raise ValueError(f"frame is missing: of right ascension, one of {', '.join(_ALLOWED['frame'])}")
        if radar and (self.frame or self.aberration):
            raise ValueError("frame and aberration are of right ascension and declination, not of a radar")
