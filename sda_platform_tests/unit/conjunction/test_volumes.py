"""Files of screening volumes: the shipped one, and clear words about one that cannot be used."""

from pathlib import Path

import pytest

from sda_platform.conjunction.volumes import STANDARD, screening_volumes
from sda_platform.formats.listings import ListingError
from sda_platform.orbits.screening.volumes import REGIMES, Volume

HEADER = "regime,shape,radial_km,in_track_km,cross_track_km\n"


def test_the_shipped_volumes_cover_every_regime() -> None:
    assert tuple(screening_volumes(STANDARD)) == REGIMES


def test_a_file_may_hold_boxes_and_ellipsoids_of_some_regimes(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEADER}LEO2, ellipsoid, 0.5, 17, 20\n\nGEO,box,12,364,30\n")
    assert screening_volumes(str(path)) == {
        "LEO2": Volume("ellipsoid", 0.5, 17.0, 20.0),
        "GEO": Volume("box", 12.0, 364.0, 30.0),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "header is ''"),
        ("regime,radial\n", "header is 'regime,radial'"),
        (HEADER, "lists nothing"),
        (HEADER + "LEO2,box,1,2\n", "line 2: 4 fields, expected 5"),
        (HEADER + "LEO9,box,1,2,3\n", "line 2: regime is 'LEO9'"),
        (HEADER + "LEO2,cube,1,2,3\n", "line 2: shape is 'cube'"),
        (HEADER + "LEO2,box,1,2,far\n", "line 2: could not convert string to float: 'far'"),
        (HEADER + "LEO2,box,1,0,3\n", "line 2: half-axes must be positive"),
        (HEADER + "LEO2,box,1,2,3\nLEO2,box,1,2,3\n", "line 3: regime LEO2 occurs twice"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_line_and_the_reason(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ListingError, match=said):
        screening_volumes(str(path))
    with pytest.raises(ListingError, match=r"absent\.csv: cannot be read"):
        screening_volumes(str(tmp_path / "absent.csv"))
