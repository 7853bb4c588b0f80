"""Hard-body radii: their sources in order, files that cannot be used, and what they do to an exact hit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.orbits import Catalogue
from sda_platform.catalog.tables import SATELLITE_CATALOG
from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, alerts_of, events_table
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.sizes import DEFAULT, FLEET, RADAR_CROSS_SECTION, ObjectSizes, object_sizes
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.formats.listings import ListingError
from sda_platform.fusion.tables import TRACKS
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.setting_sections import AlertSettings
from sda_platform_tests.support.delta_tables import commit, lake_at

DAY_NS = 86_400_000_000_000
TCA_NS = int(np.datetime64("2024-11-03", "ns").astype(np.int64))
NOBODY = Tracks.of(pa.schema([TRACKS.arrow_schema.field(name) for name in TRACK_COLUMNS]).empty_table())
SATCAT = "OBJECT_NAME,NORAD_CAT_ID,RCS,ORBIT_TYPE\nA,1,3.1415926,ORB\nB,2,,ORB\nC,3,0.00000001,ORB\n"


def files(folder: Path, satcat: str = SATCAT) -> tuple[str, str]:
    fleet, sizes = folder / "fleet.csv", folder / "satcat.csv"
    fleet.write_text("norad_id,name,operator,radius_m\n1,A,us,55\n2,B,us,\n")
    sizes.write_text(satcat)
    return str(fleet), str(sizes)


def test_the_fleet_file_counts_before_the_cross_section_and_that_before_the_type_a8(tmp_path: Path) -> None:
    sizes = object_sizes(*files(tmp_path))
    assert sizes.radius_m(1, "A") == (55.0, FLEET)
    assert sizes.radius_m(2, "B DEB") == (0.5, DEFAULT)
    assert sizes.radius_m(2, "B R/B") == (5.0, DEFAULT)
    assert sizes.radius_m(3, "C DEB") == (0.005, RADAR_CROSS_SECTION)
    radius_m, source = object_sizes("", files(tmp_path)[1]).radius_m(1, "A")
    assert radius_m == pytest.approx(1.0)
    assert source == RADAR_CROSS_SECTION


def test_the_cross_sections_of_the_satellite_catalogue_count_after_the_files_a8(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    areas = {1: 9.0, 4: np.pi, 5: None}
    rows = [{"norad_id": number, "rcs_m2": area, "decay_is_decided": False} for number, area in areas.items()]
    commit(lake, SATELLITE_CATALOG, rows)
    listed = object_sizes(*files(tmp_path))
    sizes = listed.with_table(lake, lake.log(SATELLITE_CATALOG).version())
    assert sizes.radius_m(1, "A") == (55.0, FLEET)
    assert sizes.radius_m(4, "D DEB") == (1.0, RADAR_CROSS_SECTION)
    assert sizes.radius_m(5, "E DEB") == (0.5, DEFAULT)
    assert listed.with_table(lake, -1) == listed


def test_the_kind_is_that_of_the_satellite_catalogue_and_what_it_lacks_is_no_payload_by_its_name__48(
    tmp_path: Path,
) -> None:
    lake = lake_at(tmp_path)
    types = {4: "DEBRIS", 5: "TBA", 6: "PAYLOAD", 7: None}
    rows = [{"norad_id": number, "object_type": kind, "decay_is_decided": False} for number, kind in types.items()]
    commit(lake, SATELLITE_CATALOG, rows)
    by_name = object_sizes(*files(tmp_path))
    sizes = by_name.with_table(lake, lake.log(SATELLITE_CATALOG).version())
    assert by_name.kind(8, "MYSAT-1") == "payload", "as public catalogues name payloads"
    of_part = [sizes.kind(number, "MYSAT-1") for number in (4, 5, 6, 7, 8)]
    assert of_part == ["debris", "unknown", "payload", "payload", "payload"], "a part says nothing of others"
    whole = replace(sizes, kinds={**sizes.kinds, **dict.fromkeys(range(1000, 11_000), "payload")})
    assert (whole.kind(8, "MYSAT-1"), whole.radius_m(8, "MYSAT-1")) == ("unknown", (1.0, DEFAULT))
    assert (whole.kind(2, "B"), whole.kind(8, "A DEB"), whole.kind(8, "A R/B")) == ("payload", "debris", "rocket body")
    listed = object_sizes(*files(tmp_path, "OBJECT_TYPE,NORAD_CAT_ID,RCS\nDEB,4,\nR/B,9,\n"))
    assert (listed.kind(4, "A"), listed.kind(9, "A"), listed.kind(1, "A")) == ("debris", "rocket body", "payload")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("NORAD_CAT_ID,NAME\n1,A\n", "no RCS"), ("NORAD_CAT_ID,RCS\n1,-2\n", "line 2"), ("NORAD_CAT_ID,RCS\nx,2\n", "x")],
)
def test_a_satellite_catalogue_that_cannot_be_used_is_refused_with_its_line_a8(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ListingError, match=reason):
        object_sizes(*files(tmp_path, text))


def test_commits_record_a_hash_of_the_sizes_a8(tmp_path: Path) -> None:
    fleet, satcat = files(tmp_path)
    before = ScreeningResource(fleet=fleet, satellite_catalogue=satcat).recorded()
    Path(satcat).write_text(SATCAT.replace("3.1415926", "4"))
    assert ScreeningResource(fleet=fleet, satellite_catalogue=satcat).recorded() != before


def meeting(names: tuple[str, str], age_d: float) -> tuple[Catalogue, pa.Table]:
    """Two objects at 780 km whose sets, that old at TCA, hit each other exactly, at 100 degrees; their candidate."""
    r = np.array([7158.0, 0.0, 0.0])
    speed, columns = np.sqrt(398600.4418 / 7158.0), []
    for number, angle in enumerate((30.0, 130.0), start=1):
        v = speed * np.array([0.0, np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        at_tca = mean_elements(r, v, TCA_NS, 0.0)
        epoch_ns = TCA_NS - round(age_d * DAY_NS)
        _, back_r, back_v = Propagator(at_tca).at([0], epoch_ns)
        columns.append({**vars(mean_elements(back_r[0], back_v[0], epoch_ns, 0.0)), "norad_id": np.array([number])})
    both = ElementSets.from_columns({name: np.concatenate([c[name] for c in columns]) for name in columns[0]})
    candidate = {"event_id": ["hit"], "norad_id_1": [1], "norad_id_2": [2], "tca_time_ns": [TCA_NS]}
    return Catalogue(Propagator(both), names), pa.table(candidate)


def level(assessed: pa.Table) -> tuple[str, str]:
    """The level and the rule of the alert, a day before TCA."""
    events = {row["event_id"]: {name: row[name] for name in ASSESSED_COLUMNS} for row in assessed.to_pylist()}
    (alert,) = alerts_of(events_table(events, {}), AlertPolicy(AlertSettings()), TCA_NS - DAY_NS).to_pylist()
    return alert["risk"], alert["rule"]


@pytest.mark.parametrize("age_d", [1.0, 3.0])
def test_an_exact_hit_of_payload_and_debris_becomes_a_red_alert_a9(age_d: float) -> None:
    catalogue, candidate = meeting(("PAYLOAD", "FENGYUN 1C DEB"), age_d)
    found = assess_candidates(
        candidate, catalogue, NOBODY, OperatorEphemerides.none(), Volume.sphere(5.0), ObjectSizes()
    )
    (row,) = found.to_pylist()
    assert row["miss_distance_km"] < 0.05
    assert (row["radius_1_m"], row["radius_2_m"], row["hard_body_radius_m"]) == (5.0, 0.5, 5.5)
    assert (row["radius_source_1"], row["radius_source_2"]) == (DEFAULT, DEFAULT)
    assert row["collision_probability"] < 1e-4
    assert level(found) == ("red", "dilution")


def test_a_station_of_55_m_has_a_hundred_times_the_probability_and_is_red_by_it_a8() -> None:
    catalogue, candidate = meeting(("ISS (ZARYA)", "FENGYUN 1C DEB"), 1.0)
    own = OperatorEphemerides.none()
    pc = []
    for sizes in (ObjectSizes(), ObjectSizes({1: 55.0})):
        found = assess_candidates(candidate, catalogue, NOBODY, own, Volume.sphere(5.0), sizes)
        pc.append(found.column("collision_probability")[0].as_py())
    assert pc[1] / pc[0] == pytest.approx((55.5 / 5.5) ** 2, rel=0.05)
    assert found.column("radius_source_1").to_pylist() == [FLEET]
    assert level(found) == ("red", "probability")
