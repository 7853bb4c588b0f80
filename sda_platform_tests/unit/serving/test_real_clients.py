"""Clients that were written for CelesTrak read this catalogue, over a socket and unchanged."""

import csv
import io
import json
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from sgp4 import omm
from sgp4.api import Satrec, jday
from skyfield.api import EarthSatellite, Loader

from sda_platform.serving.clients import ANYONE, KnownClients
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.served_sets import BIG, GEO, ISS, NOW_NS, nothing_submitted
from sda_platform_tests.unit.serving.catalogues import row
from sda_platform_tests.unit.serving.endpoint import FILE, TOKENS, clients_of
from sda_platform_tests.unit.serving.source import MemorySource

GP = "/NORAD/elements/gp.php"
AT = (2024, 10, 28, 12, 0, 0)


@contextmanager
def endpoint(home: Path, clients: KnownClients = ANYONE) -> Iterator[str]:
    """The address of an endpoint over the space station, a geostationary satellite and some others."""
    source = MemorySource()
    source.commit(ISS, GEO, BIG, *(row(number) for number in range(1, 6)))
    live = LiveCatalogue(source, IndexStore(home), lambda: NOW_NS)
    live.start()
    puts = Puts(live, lambda name, data, origins: NOW_NS)
    app = application(live, puts, nothing_submitted(home), clients)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    puts.close()
    live.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with endpoint(tmp_path_factory.mktemp("endpoint")) as address:
        yield address


def served_km(base: str, number: int) -> list[float]:
    """Where the endpoint says that the object is at ``AT``, TEME."""
    at = "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z".format(*AT)
    with urllib.request.urlopen(f"{base}/objects/{number}/states?at={at}") as answer:
        found: list[float] = json.load(answer)[0]["r_teme_km"]
    return found


@pytest.mark.parametrize("media", ["csv", "xml"])
def test_python_sgp4_reads_the_answer_and_finds_the_same_state(base: str, media: str) -> None:
    with urllib.request.urlopen(f"{base}{GP}?CATNR=25544,41866&FORMAT={media.upper()}") as answer:
        text = io.StringIO(answer.read().decode())
    found = list(omm.parse_csv(text) if media == "csv" else omm.parse_xml(text))
    assert [int(fields["NORAD_CAT_ID"]) for fields in found] == [25544, 41866]
    for fields in found:
        satellite = Satrec()
        omm.initialize(satellite, fields)
        error, r_km, _ = satellite.sgp4(*jday(*AT))
        assert error == 0
        assert r_km == pytest.approx(served_km(base, satellite.satnum), abs=1e-3)


def skyfields(load: Loader, base: str, media: str) -> list[Any]:
    """The satellites as Skyfield's documentation reads them from CelesTrak."""
    times, name = load.timescale(builtin=True), f"gp.{media}"
    url = f"{base}{GP}?CATNR=25544,41866&FORMAT={media}"
    if media == "tle":
        return list(load.tle_file(url, filename=name))
    load.download(url, filename=name)
    with load.open(name) as file:
        rows = json.load(file) if media == "json" else csv.DictReader(io.StringIO(file.read().decode()))
        return [EarthSatellite.from_omm(times, fields) for fields in rows]


@pytest.mark.parametrize("media", ["tle", "csv", "json"])
def test_skyfield_loads_the_answer_and_finds_the_same_state(base: str, tmp_path: Path, media: str) -> None:
    load = Loader(str(tmp_path), verbose=False)
    found = skyfields(load, base, media)
    assert [satellite.model.satnum for satellite in found] == [25544, 41866]
    assert found[0].name == "ISS (ZARYA)"
    for satellite in found:
        error, r_km, _ = satellite.model.sgp4(*jday(*AT))
        assert error == 0
        tolerance_km = 5.0 if media == "tle" else 1e-3  # two lines have four digits of an angle
        assert np.linalg.norm(np.subtract(r_km, served_km(base, satellite.model.satnum))) < tolerance_km


NODE = Path(__file__).parents[3] / ".venv/node"
READS = """
import { json2satrec, propagate, twoline2satrec } from 'satellite.js';
const [base, at] = process.argv.slice(1);
const gp = async format => (await fetch(`${base}/NORAD/elements/gp.php?CATNR=25544,41866&FORMAT=${format}`)).text();
const lines = (await gp('tle')).trim().split(/\\r?\\n/);
const sets = JSON.parse(await gp('json'));
const place = satellite => Object.values(propagate(satellite, new Date(at)).position);
console.log(JSON.stringify({
  tle: [0, 3].map(n => place(twoline2satrec(lines[n + 1], lines[n + 2]))),
  json: sets.map(each => place(json2satrec(each))),
}));
"""
"""A program for satellite.js, which fetches the two forms that it reads."""


def test_satellite_js_reads_both_forms_and_finds_the_same_states__44(base: str) -> None:
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules/satellite.js").is_dir():
        pytest.skip("no Node here, or no satellite.js: `make setup-test` installs it where npm can")
    at = "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z".format(*AT)
    done = subprocess.run(
        [node, "--input-type=module", "--eval", READS, base, at],
        cwd=NODE, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    for form, tolerance_km in (("tle", 5.0), ("json", 1e-3)):
        for number, r_km in zip((25544, 41866), found[form], strict=True):
            assert np.linalg.norm(np.subtract(r_km, served_km(base, number))) < tolerance_km, (form, number)


def test_a_client_of_the_standard_library_is_told_that_nothing_has_changed(base: str) -> None:
    url = f"{base}{GP}?GROUP=active&FORMAT=json"
    with urllib.request.urlopen(url) as answer:
        tag = answer.headers["ETag"]
    with pytest.raises(urllib.error.HTTPError) as unchanged:
        urllib.request.urlopen(urllib.request.Request(url, headers={"If-None-Match": tag}))
    assert unchanged.value.code == 304


def test_the_spacetrack_client_reads_the_catalogue_unchanged__44(base: str, tmp_path: Path) -> None:
    spacetrack = pytest.importorskip("spacetrack")
    operators = pytest.importorskip("spacetrack.operators")
    with spacetrack.SpaceTrackClient("me", "secret", base_url=f"{base}/") as client:
        (iss,) = client.gp(norad_cat_id=25544, parse_types=True)
        assert (iss["OBJECT_NAME"], iss["NORAD_CAT_ID"], iss["MEAN_MOTION"]) == ("ISS (ZARYA)", 25544, 15.5)
        assert iss["EPOCH"].year == AT[0]
        slow = {"mean_motion": operators.inclusive_range(0.99, 1.01), "eccentricity": operators.less_than(0.01)}
        assert next(client.gp(**slow, format="3le", iter_lines=True)) == "0 GOES 16"
        last = client.gp(norad_cat_id=operators.greater_than(2), orderby="norad_cat_id desc", limit=2)
        assert [each["NORAD_CAT_ID"] for each in last] == ["799500001", "41866"]
        assert len(client.satcat(limit=3, decay=None)) == 3
        text = client.gp(norad_cat_id=[25544, 41866], format="3le")
    (tmp_path / "gp.3le").write_text(text)
    found = Loader(str(tmp_path), verbose=False).tle_file(str(tmp_path / "gp.3le"))
    assert [(each.name, each.model.satnum) for each in found] == [("ISS (ZARYA)", 25544), ("GOES 16", 41866)]


def test_the_spacetrack_client_logs_in_where_reading_needs_it__44(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spacetrack = pytest.importorskip("spacetrack")
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    clients = clients_of(tmp_path, FILE + "[reading]\nneeds_login = true\n")
    with endpoint(tmp_path / "served", clients) as base:
        with spacetrack.SpaceTrackClient("aurora", TOKENS["AURORA_TOKEN"], base_url=f"{base}/") as client:
            assert [each["OBJECT_NAME"] for each in client.gp(norad_cat_id=25544)] == ["ISS (ZARYA)"]
        with (
            spacetrack.SpaceTrackClient("aurora", "wrong", base_url=f"{base}/") as client,
            pytest.raises(spacetrack.AuthenticationError),
        ):
            client.gp(norad_cat_id=25544)
