"""`sda connect`: what one downloads of a provider lands once an interval; a real server on loopback answers."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from starlette.requests import Request
from starlette.responses import Response

from sda_platform.cli.main import main
from sda_platform.edge.config import CollectorConfig, load_config
from sda_platform.formats.omm import read_omm_csv
from sda_platform.formats.records import RawRecord
from sda_platform.formats.space_weather import read_days
from sda_platform_tests.support.collectors import WORKER_THREAD, landed, payloads
from sda_platform_tests.support.http_sources import TLE
from sda_platform_tests.support.sample_inputs import SAMPLES
from sda_platform_tests.unit.edge.servers import Answer, Remote, serving

# As Space-Track gives class `gp` in CSV: every field in quotes, and fields of its own.
GP = {
    "CCSDS_OMM_VERS": "3.0", "COMMENT": "GENERATED VIA SPACE-TRACK.ORG API", "CREATION_DATE": "2024-11-01T06:36:11",
    "ORIGINATOR": "18 SPCS", "OBJECT_NAME": "ISS (ZARYA)", "OBJECT_ID": "1998-067A", "CENTER_NAME": "EARTH",
    "REF_FRAME": "TEME", "TIME_SYSTEM": "UTC", "MEAN_ELEMENT_THEORY": "SGP4", "EPOCH": "2024-11-01T04:11:17.949312",
    "MEAN_MOTION": "15.49933303", "ECCENTRICITY": "0.00092960", "INCLINATION": "51.6393",
    "RA_OF_ASC_NODE": "356.2817", "ARG_OF_PERICENTER": "77.9131", "MEAN_ANOMALY": "33.2203", "EPHEMERIS_TYPE": "0",
    "CLASSIFICATION_TYPE": "U", "NORAD_CAT_ID": "25544", "ELEMENT_SET_NO": "999", "REV_AT_EPOCH": "47959",
    "BSTAR": "0.00040391000000", "MEAN_MOTION_DOT": "0.00022844", "MEAN_MOTION_DDOT": "0.0000000000000",
    "SEMIMAJOR_AXIS": "6796.034", "PERIOD": "92.907", "APOAPSIS": "424.217", "PERIAPSIS": "411.582",
    "OBJECT_TYPE": "PAYLOAD", "RCS_SIZE": "LARGE", "COUNTRY_CODE": "ISS", "LAUNCH_DATE": "1998-11-20",
    "SITE": "TTMTR", "DECAY_DATE": "", "FILE": "4514230", "GP_ID": "273421432", "TLE_LINE0": "0 ISS (ZARYA)",
    "TLE_LINE1": TLE[1], "TLE_LINE2": TLE[2],
}  # fmt: skip
GP_CSV = "".join(",".join(f'"{field}"' for field in row) + "\n" for row in (GP.keys(), GP.values()))
WEATHER = (
    "DATE,BSRN,ND,KP1,AP1,AP2,AP3,AP4,AP5,AP6,AP7,AP8,AP_AVG,F10.7_OBS,F10.7_OBS_CENTER81\n"
    "2024-10-31,2605,1,20,7,7,7,7,7,7,7,7,7,240.1,220.5\n"
)
SOURCES = (
    "space-track-elements", "space-track-messages-1", "space-track-messages-2", "celestrak-satellites",
    "celestrak-launches", "celestrak-space-weather",
)  # fmt: skip
Connect = Callable[..., Result]


def answer(request: Request) -> Response:
    """What Space-Track and CelesTrak answer to one who has logged in."""
    path = request.url.path
    if path == "/ajaxauth/login":
        return Response('""', headers={"Set-Cookie": "chocolatechip=1; Path=/"})
    if path.startswith("/basicspacedata") and request.cookies.get("chocolatechip") != "1":
        return Response(status_code=401)
    if "/class/gp/" in path or path.endswith("/gp.php"):
        return Response(GP_CSV)
    if "/class/cdm_public/" in path:
        return Response(SAMPLES["cdm-json"] if "/SAT_1_ID/" in path else "[]")
    return Response(WEATHER if "/SW-" in path else SAMPLES["satcat-csv"])


@pytest.fixture
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """`sda connect`, with requests to one host that need not be apart."""
    monkeypatch.setattr("sda_platform.edge.fetching.ProcessExecutor", WORKER_THREAD)
    monkeypatch.setattr("sda_platform.edge.host_limits.HostLimits.take", lambda *_: None)
    monkeypatch.setenv("SPACETRACK_USER", "anna")
    monkeypatch.setenv("SPACETRACK_PASSWORD", "s3cret")
    (tmp_path / "fleet.csv").write_text("norad_id,name,operator\n25544,ISS,NASA\n20580,HST,NASA\n")
    monkeypatch.setenv("SDA_FLEET", str(tmp_path / "fleet.csv"))
    return lambda *arguments: CliRunner().invoke(main, ["--home", str(tmp_path), "connect", *arguments])


def connected(home: Path, connect: Connect, answer: Answer, times: int = 1) -> tuple[list[Result], Remote]:
    """Run `sda connect space-track` against a server, as often as stated; the file names its address."""

    async def scenario() -> tuple[list[Result], Remote]:
        async with serving(answer) as remote:
            file = home / "collect.toml"
            file.write_text(
                f'[sources.mine]\nkind = "space-track"\nspace_track = "{remote.url}"\ncelestrak = "{remote.url}/"\n'
            )
            return [await asyncio.to_thread(connect, "space-track") for _ in range(times)], remote

    return asyncio.run(scenario())


def outcomes(result: Result) -> dict[str, str]:
    lines = (line.partition(": ") for line in result.output.splitlines())
    return {name: text for name, _, text in lines if name in SOURCES}


def test_what_one_downloads_lands_and_a_repetition_asks_for_nothing(tmp_path: Path, connect: Connect) -> None:
    (first, second), remote = connected(tmp_path, connect, answer, times=2)
    assert first.exit_code == 0, first.output
    assert outcomes(first) == {
        "space-track-elements": "1 record landed",
        "space-track-messages-1": "1 record landed",
        "space-track-messages-2": "0 records landed",
        "celestrak-satellites": "3 records landed",
        "celestrak-launches": "3 records landed",
        "celestrak-space-weather": "1 day saved",
    }
    assert "earth orientation: installed up to 20" in first.output
    (element_set,) = payloads(tmp_path, "elements")
    found = read_omm_csv(RawRecord(0, None, element_set, header=GP_CSV.partition("\n")[0].encode()))
    assert (found.norad_id, found.originator) == (25544, "18 SPCS")
    assert [origin.rank for meta, _ in landed(tmp_path, "elements") for origin in meta.origins or ()] == [20]
    assert len(payloads(tmp_path, "messages")) == 1
    assert len(payloads(tmp_path, "satellites")) == 6
    assert len(read_days(tmp_path / "space-weather.csv")) == 1
    asked = [request.url.path for request in remote.asked if request.method == "GET"]
    assert any(path.endswith("/class/cdm_public/SAT_1_ID/25544,20580/CREATED/>now-7.00/orderby/CREATED/format/json")
               for path in asked)  # fmt: skip
    assert len(asked) == len(SOURCES), "the second run requested something"
    assert second.exit_code == 0
    assert set(outcomes(second)) == set(SOURCES)
    for name, text in outcomes(second).items():
        days = "7 days" if name == "celestrak-satellites" else "24 h" if "celestrak" in name else "8 h"
        assert text == f"nothing to do; the next request is allowed in {days}"
    files = (tmp_path / "collector").iterdir()
    assert "s3cret" not in "".join([first.output, *(path.read_text() for path in files)])


def test_messages_are_requested_from_the_last_answer_on(tmp_path: Path, connect: Connect) -> None:
    connected(tmp_path, connect, answer)
    for state in (tmp_path / "collector").glob("space-track-*.pull.json"):
        held = json.loads(state.read_text())
        state.write_text(json.dumps({**held, "asked_s": 0.0, "landed_s": held["landed_s"] - 2 * 86_400}))
    _, remote = connected(tmp_path, connect, answer)
    (path,) = [each.url.path for each in remote.asked if "SAT_2_ID" in each.url.path]
    assert "/CREATED/>now-2.10/" in path


def test_a_wrong_password_is_named_and_may_be_corrected_in_a_minute(tmp_path: Path, connect: Connect) -> None:
    def refuse(request: Request) -> Response:
        return Response('{"Login":"Failed"}') if request.url.path == "/ajaxauth/login" else answer(request)

    (result,), remote = connected(tmp_path, connect, refuse)
    assert result.exit_code == 1
    assert "check SPACETRACK_USER and SPACETRACK_PASSWORD" in outcomes(result)["space-track-elements"]
    assert len([each for each in remote.asked if each.url.path == "/ajaxauth/login"]) == 1, "it locks an account"
    assert "60 s" in outcomes(result)["space-track-messages-1"]
    (tmp_path / "collector/hosts.json").unlink()  # a minute later
    (result,), _ = connected(tmp_path, connect, answer)
    assert outcomes(result)["space-track-elements"] == "1 record landed"


def test_without_an_account_the_variables_are_named(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPACETRACK_PASSWORD")
    (result,), remote = connected(tmp_path, connect, answer)
    assert outcomes(result)["space-track-elements"] == "failed: set SPACETRACK_PASSWORD in the environment to log in"
    assert result.exit_code == 1
    assert not [each for each in remote.asked if each.url.path.startswith(("/ajaxauth", "/basicspacedata"))]


def test_a_document_that_was_received_is_landed_without_a_second_request(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a full disk, or a kill: the download is kept, its interval as well."""

    def full(*_: object, **__: object) -> bool:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as faults:
        faults.setattr("sda_platform.edge.sources.documents.seal", full)
        (result,), _ = connected(tmp_path, connect, answer)
        assert "No space left" in outcomes(result)["space-track-elements"]
    (result,), remote = connected(tmp_path, connect, answer)
    assert outcomes(result)["space-track-elements"] == "1 record landed"
    assert not [each for each in remote.asked if "/class/gp/" in each.url.path]


def test_a_page_in_the_place_of_space_weather_leaves_the_file(tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "space-weather.csv").write_text(WEATHER)
    (result,), _ = connected(
        tmp_path,
        connect,
        lambda request: Response("<html>maintenance</html>") if "/SW-" in request.url.path else answer(request),
    )
    assert "the answer: no days; the file stays" in outcomes(result)["celestrak-space-weather"]
    assert (tmp_path / "space-weather.csv").read_text() == WEATHER


def test_the_collector_goes_on_with_what_was_connected(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The section is added once, below what a person wrote; providers that both need a file request it once."""

    async def nothing(*_: object, **__: object) -> object:
        return
        yield

    monkeypatch.setattr("sda_platform.cli.data.connect.fetch", nothing)
    file = tmp_path / "collect.toml"
    file.write_text('[sources.links]\nkind = "isl"  # ours\nbind = "127.0.0.1:0"')
    for provider in ("space-track", "celestrak", "celestrak"):
        assert connect(provider).exit_code == 0
    assert connect("celestrak", "--once").exit_code == 0
    text = file.read_text()
    assert text.startswith('[sources.links]\nkind = "isl"  # ours\n')
    assert text.count("[sources.celestrak]") == 1
    names = list(load_config(file).sources)
    assert set(SOURCES) < set(names)
    assert names.count("celestrak-satellites") == 1
    assert {"links", "celestrak-active"} <= set(names)


def test_a_fleet_that_no_request_can_name_is_refused(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{number},S,us\n" for number in range(1, 502))
    (tmp_path / "fleet.csv").write_text(f"norad_id,name,operator\n{rows}")
    (result,), _ = connected(tmp_path, connect, answer)
    assert "501 satellites; a request names at most 500" in outcomes(result)["space-track-messages-1"]
    assert outcomes(result)["space-track-elements"] == "1 record landed"


def test_an_unknown_option_of_a_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        CollectorConfig.model_validate({"sources": {"a": {"kind": "celestrak", "password": "x"}}})
