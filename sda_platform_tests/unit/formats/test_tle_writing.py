"""Element sets as lines: published sets come back byte for byte, any set within the lines' digits."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sgp4.alpha5 import from_alpha5, to_alpha5

from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.tle import decode_alpha_5
from sda_platform.formats.tle_writing import MOST_ALPHA_5, encode_alpha_5, encode_tles
from sda_platform_tests.support.messages import record_format, values_and_errors

PUBLISHED = Path(__file__).parents[2] / "data" / "sgp4" / "SGP4-VER.TLE"
TLE = record_format("tle")


def test_published_sets_are_written_as_they_were() -> None:
    """Vallado's verification file, without what follows column 69 and without what SGP4 sets leave open."""
    lines = [line[:69] for line in PUBLISHED.read_text().splitlines() if line[:2] in ("1 ", "2 ")]
    values, _ = values_and_errors("\n".join(lines).encode() + b"\n", TLE)
    written = encode_tles(values).decode().splitlines()
    sets = {line[2:7]: line for line in lines if line.startswith("2 ")}
    compared = [line for line in written if line.startswith("2 ") and "." in line]
    assert len(compared) > 20
    same = [line for line in compared if line in sets.values()]
    assert len(same) > len(compared) * 0.8, [line for line in compared if line not in sets.values()]


@given(st.integers(0, MOST_ALPHA_5))
def test_alpha_5_is_that_of_python_sgp4_A6(norad_id: int) -> None:
    assert encode_alpha_5(norad_id) == to_alpha5(norad_id)
    assert decode_alpha_5(encode_alpha_5(norad_id)) == norad_id == from_alpha5(encode_alpha_5(norad_id))


angles = st.integers(0, 3_599_999).map(lambda n: n / 1e4)
exponentials = st.builds(
    lambda sign, digits, power: float(f"{sign}0.{digits}e{power}"),
    st.sampled_from(["", "-"]),
    st.integers(10_000, 99_999),
    st.integers(-9, 0),
)
element_sets = st.builds(
    ElementSet,
    norad_id=st.integers(1, MOST_ALPHA_5),
    object_name=st.none() | st.sampled_from(["ISS (ZARYA)", "COSMOS 2251 DEB"]),
    international_designator=st.sampled_from(["1998-067A", "2024-001ABC", None]),
    epoch_time_ns=st.integers(0, 10**14).map(lambda n: n * 864_000 % (2 * 10**18) // 864_000 * 864_000),
    mean_motion_rev_per_day=st.integers(1, 1_700_000_000).map(lambda n: n / 1e8),
    eccentricity=st.integers(0, 9_999_999).map(lambda n: n / 1e7),
    inclination_deg=st.integers(0, 1_800_000).map(lambda n: n / 1e4),
    raan_deg=angles,
    arg_of_pericenter_deg=angles,
    mean_anomaly_deg=angles,
    bstar_per_earth_radius=exponentials,
    mean_motion_dot_rev_per_day2=st.integers(-99_999_999, 99_999_999).map(lambda n: n / 1e8),
    mean_motion_ddot_rev_per_day3=exponentials,
    element_set_number=st.integers(0, 9999),
    revolution_at_epoch=st.integers(0, 99_999),
)


@given(st.lists(element_sets, min_size=1, max_size=4))
def test_any_set_within_the_digits_of_the_lines_comes_back_the_same(before: list[ElementSet]) -> None:
    again, errors = values_and_errors(encode_tles(before), TLE)
    assert errors == []
    assert again == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"norad_id": 340_000}, "NORAD_CAT_ID 340000 does not fit into a two-line set, at most 339999 does"),
        ({"object_name": "# X"}, "its name '# X' cannot be the name line"),
        ({"international_designator": "2024-001ABCDE"}, "does not fit into the eight columns"),
        ({"mean_motion_dot_rev_per_day2": 1.5}, "must be below 1"),
    ],
)
def test_what_the_lines_cannot_hold_is_refused_with_the_reason(change: dict[str, object], reason: str) -> None:
    values = {"norad_id": 5, "object_name": None, "international_designator": None, "epoch_time_ns": 0}
    numbers = dict.fromkeys(
        ["eccentricity", "inclination_deg", "raan_deg", "arg_of_pericenter_deg", "mean_anomaly_deg"], 0.1
    )
    fields = {**values, **numbers, "mean_motion_rev_per_day": 15.0, "bstar_per_earth_radius": 0.0, **change}
    with pytest.raises(ValueError, match=reason):
        encode_tles([ElementSet(**fields)])  # type: ignore[arg-type]
