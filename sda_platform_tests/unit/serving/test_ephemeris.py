"""The ephemeris of any object: what is served lands as the states of `/states`, with covariances of its frame."""

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode
from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIDES_FEED
from sda_platform.clock import iso
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.ephemerides import covariances_from_lower
from sda_platform.serving.ephemeris import FRAMES, MOST_STATES
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.refined_paths import refined_row
from sda_platform_tests.support.segments import START_NS, after, described
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import FILE, TOKENS, clients_of, endpoint_over, plan

HOUR = f"from={iso(START_NS)}&until={iso(after(3600))}&step=300"
ISS = "/objects/25544/ephemeris"
ENCODINGS = {"oem": "oem-kvn", "oem-xml": "oem-xml"}


def landed(client: Client, path: str, name: str) -> dict[str, Any]:
    """The row that our own intake makes of the one segment of an answer."""
    answer = client.get(f"{path}&format={name}")
    assert answer.status_code == 200, answer.text
    (row,) = decode(
        answer.content, described(answer.content, EPHEMERIDES_FEED, segment_format=ENCODINGS[name])
    ).to_pylist()
    assert row["error"] is None
    return dict(row)


def stretches(client: Client, query: str = HOUR) -> list[dict[str, Any]]:
    answer = client.get(f"{ISS}?{query}&format=json")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["segments"]
    return found


@pytest.mark.parametrize("frame", FRAMES)
def test_a_message_in_any_frame_lands_to_the_states_that_are_served__44(tmp_path: Path, frame: str) -> None:
    with endpoint_over(tmp_path) as (client, _):
        rows = [landed(client, f"{ISS}?{HOUR}&frame={frame}", name) for name in ENCODINGS]
        (in_teme,) = stretches(client)
        times = [iso(time_ns) for time_ns in in_teme["time_ns"]]
        states = client.get("/objects/25544/states?" + "&".join(f"at={each}" for each in times)).json()
    expected = np.array([[*each["r_teme_km"], *each["v_teme_km_s"]] for each in states])
    wanted = covariances_from_lower(in_teme["covariances"])
    for row in rows:
        assert (row["norad_id"], row["reference_frame"]) == (25544, frame)
        assert row["state_time_ns"] == [each["time_ns"] for each in states] == row["covariance_time_ns"]
        found = np.array(row["state"]).reshape(-1, 6)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(covariances_from_lower(row["covariance"]), wanted, rtol=1e-7, atol=1e-12)


def test_the_answer_says_which_set_and_whose_model_it_rests_on__44(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, _):
        (found,) = stretches(client)
        names = ("oem", "ocm", "ocm-xml")
        oem, ocm, xml = (client.get(f"{ISS}?{HOUR}&format={name}").text for name in names)
        negotiated = client.get(f"{ISS}?{HOUR}", headers={"Accept": "application/x-ccsds-kvn"})
        whole = client.get(f"{ISS}?{HOUR}", headers={"Accept-Encoding": "gzip"})
    assert (found["origin"], found["name"][:10], found["error_scales"]) == (
        "element_set",
        iso(START_NS - 25544)[:10],
        [1.0] * 3,
    )
    for text in (oem, ocm, xml):
        assert "SGP4 from the element set of" in text
        assert "error scales R T N 1.000 1.000 1.000" in text
    assert negotiated.text == oem
    assert (whole.headers["content-encoding"], whole.headers["cache-control"]) == ("gzip", "no-cache")
    assert ocm.count("TRAJ_START") == ocm.count("COV_START") == 1
    assert "INTERNATIONAL_DESIGNATOR = 1998-067A" in ocm.replace("  ", " ")
    of_xml = fromstring(xml).find("body/segment")
    assert of_xml is not None
    lines = [line for line in ocm.splitlines() if line[:2] == "20"]
    assert [each.text for name in ("traj", "cov") for each in of_xml.iterfind(f"data/{name}/{name}Line")] == lines
    assert of_xml.findtext("metadata/INTERNATIONAL_DESIGNATOR") == "1998-067A"


def test_a_submitted_ephemeris_counts_where_it_reaches_and_from_when_it_came__44(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, lake):
        data = plan(25544)
        (row,) = decode(data, described(data, EPHEMERIDES_FEED, segment_format="oem-kvn")).to_pylist()
        commit(lake, EPHEMERIDES, [{**row, "received_time_ns": START_NS}])
        query = f"from={iso(after(6900))}&until={iso(after(7500))}&step=60"
        first, second = stretches(client, query)
        assert [first["origin"], second["origin"]] == ["operator_ephemeris", "element_set"]
        assert first["time_ns"][-1] == row["usable_until_ns"] == second["time_ns"][0] - 60 * 10**9
        assert first["states"][-1] == pytest.approx(row["state"][-6:], abs=1e-9)
        assert first["name"] in client.get(f"{ISS}?{query}&format=oem").text
        for more in ("source=element_sets", f"as_of={iso(START_NS - 1)}"):
            assert {each["origin"] for each in stretches(client, f"{query}&{more}")} == {"element_set"}


def test_an_operators_ephemeris_is_for_those_who_may_write_for_its_object__44(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    clients = clients_of(tmp_path, FILE.replace("norad_ids = [25544]", "norad_ids = [5]"))
    with endpoint_over(tmp_path / "served", clients) as (client, lake):
        data = plan(25544)
        (row,) = decode(data, described(data, EPHEMERIDES_FEED, segment_format="oem-kvn")).to_pylist()
        commit(lake, EPHEMERIDES, [{**row, "received_time_ns": START_NS}])
        for token, origin in (
            ("", "element_set"),
            ("AURORA_TOKEN", "element_set"),
            ("SURVEY_TOKEN", "operator_ephemeris"),
        ):
            login = {"Authorization": f"Bearer {TOKENS[token]}"} if token else {}
            found = client.get(f"{ISS}?{HOUR}", headers=login).json()["segments"]
            assert [each["origin"] for each in found] == [origin], token


def test_a_refined_ephemeris_counts_below_one_of_an_operator__44(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, lake):
        times = [after(60 * n) for n in range(11)]
        facts = {"usable_from_ns": times[0], "usable_until_ns": times[-1], "epoch_time_ns": times[0]}
        states = [value for n in range(11) for value in (7000.0 + n, 450.0 * n, 12.5, 0.1, 7.5, 0.0)]
        row = refined_row(**facts, state_time_ns=times, state=states, covariance_time_ns=times[:2])
        commit(lake, REFINED_EPHEMERIDES, [row])
        found = stretches(client, f"from={iso(START_NS)}&until={iso(after(900))}&step=60")
    assert [(each["origin"], len(each["time_ns"])) for each in found] == [("refined_ephemeris", 11), ("element_set", 5)]
    assert found[0]["states"][3] == pytest.approx(states[18:24])


def test_readers_of_some_sources_get_what_follows_from_their_sets__44(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("P", TOKENS["AURORA_TOKEN"])
    text = '[clients.p]\ntoken_variable = "P"\nsources = ["celestrak"]\n[reading]\nneeds_login = true\n'
    with endpoint_over(tmp_path / "served", clients_of(tmp_path, text)) as (client, _):
        login = {"Authorization": f"Bearer {TOKENS['AURORA_TOKEN']}"}
        assert client.get(f"{ISS}?{HOUR}", headers=login).status_code == 404
        assert client.get(f"{ISS}?{HOUR}").status_code == 401


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("step=0.1", f"at most {MOST_STATES:,}"),
        ("step=0", "must be 0.001 to 86400"),
        ("step=nan", "must be 0.001 to 86400"),
        ("from=2024-11-02T00:00:00Z&until=2024-11-01T00:00:00Z", "until is before from"),
        ("from=2024-11-01T00:00:00Z&until=2025-11-01T00:00:00Z", "31 days"),
        ("frame=J2000", "must be one of TEME, GCRF, ITRF"),
        ("format=tle", "must be one of json, oem"),
        ("source=tracks", "must be one of best"),
        ("from=2029-01-01T00:00:00Z&frame=ITRF", "Earth's orientation is known from"),
        ("from=2100-01-01T00:00:00Z", "has no state in this span"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason__44(tmp_path: Path, query: str, reason: str) -> None:
    with endpoint_over(tmp_path) as (client, _):
        # The highest of the objects: it lasts for years.
        number = 5 if "ITRF" in query else 25544
        answer = client.get(f"/objects/{number}/ephemeris?{query}")
        assert client.get("/objects/7/ephemeris").status_code == 404
    assert answer.status_code == 400
    assert reason in json.loads(answer.text)["error"]


def test_states_of_now_are_kept_by_no_cache(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, _):
        assert client.get(ISS).headers["cache-control"] == "no-store"
        tag = client.get(f"{ISS}?{HOUR}").headers["etag"]
        assert client.get(f"{ISS}?{HOUR}", headers={"If-None-Match": tag}).status_code == 304
