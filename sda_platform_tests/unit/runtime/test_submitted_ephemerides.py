"""An operator's ephemeris over HTTP: taken once and for good, or refused with line and reason, and its state."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode
from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIDES_FEED
from sda_platform.clock import MissionClock
from sda_platform.formats.conversion import converted
from sda_platform.formats.registry import known_format
from sda_platform.lake.lake import Lake
from sda_platform.landing.lander import Lander
from sda_platform.landing.zone import LandingZone
from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides, _use
from sda_platform.serving.submissions import OF_CONJUNCTIONS, SCREENED, Submission
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.ephemerides_of_operators import oem_through
from sda_platform_tests.support.sample_inputs import SAMPLES
from sda_platform_tests.support.segments import START_NS, after, described
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import TOKENS, application_over, clients_of, endpoint_over

KVN = {"content-type": "application/x-ccsds-kvn"}
PLACE, SPEED = np.array([7000.0, 0.0, 0.0]), np.array([0.0, 5.0, 5.7])
PLAN = oem_through(25544, START_NS, PLACE, SPEED, begin_ns=START_NS, end_ns=after(7200))


@dataclass
class Served:
    """An endpoint over the lake below ``home``."""

    client: Client
    home: Path
    lake: Lake

    @property
    def zone(self) -> LandingZone:
        return LandingZone(str(self.home / "landing"), "ephemerides")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with endpoint_over(tmp_path) as (client, lake):
        yield Served(client, tmp_path, lake)


def test_a_submission_is_durable_when_it_is_answered_and_the_same_bytes_are_the_same_one(served: Served) -> None:
    answer = served.client.post("/ephemerides", content=PLAN, headers=KVN)
    told = answer.json()
    assert (answer.status_code, told["is_new"], answer.headers["location"]) == (201, True, told["status"])
    (sealed,) = served.zone.pending()
    assert served.zone.read(sealed).data == PLAN
    again = served.client.post("/ephemerides", content=PLAN, headers=KVN)
    assert (again.status_code, again.json()) == (200, {**told, "is_new": False})
    assert len(served.zone.pending()) == 1
    state = served.client.get(told["status"])
    assert (state.status_code, state.json()) == (
        200,
        {"id": told["id"], "state": "received", "received_utc": "2024-11-01T00:00:00.000Z", "conjunctions": []},
    )
    messages = served.client.get(told["status"] + "?format=kvn")
    assert (messages.status_code, messages.headers["x-state"], messages.content) == (202, "received", b"")


def test_an_xml_submission_is_taken_as_well(served: Served) -> None:
    xml = converted(PLAN, "oem-kvn", "oem-xml").data
    answer = served.client.post("/ephemerides", content=xml, headers={"content-type": "application/xml"})
    assert answer.status_code == 201
    (sealed,) = served.zone.pending()
    assert sealed.name.endswith(".xml")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("OBJECT_ID = 25544", "OBJECT_ID = 2020-001A", "OBJECT_ID is '2020-001A', the designator of no object"),
        ("OBJECT_ID = 25544", "OBJECT_ID = ISS", "OBJECT_ID is 'ISS', must be a catalogue number or a designator"),
        ("OBJECT_ID = 25544", "OBJECT_ID = 77777", "OBJECT_ID is 77777, which the catalogue does not have"),
        ("7000.000000000", "nonsense", "line 13: X is 'nonsense', must be a number"),
        ("REF_FRAME = TEME", "REF_FRAME = EME2001", "REF_FRAME is 'EME2001', must be one of"),
        ("2024-11-01T0", "2020-11-01T0", "it ended at 2020-11-01T02:00:00"),
        (PLAN.decode(), "CCSDS_CDM_VERS = 1.0\n", "line 1: the message ends in its header"),
        (PLAN.decode(), "\n", "the body holds no orbit ephemeris"),
        ("COV_REF_FRAME = RTN\n1e-4", "COV_REF_FRAME = RTN\n-1e-4", "a covariance has a negative variance"),
    ],
)
def test_what_cannot_be_screened_is_refused_with_the_reason_and_nothing_lands(
    served: Served, old: str, new: str, reason: str
) -> None:
    assert old in PLAN.decode()
    answer = served.client.post("/ephemerides", content=PLAN.decode().replace(old, new).encode(), headers=KVN)
    assert answer.status_code == 422, answer.text
    assert reason in answer.json()["error"]
    assert all(each["reason"] and each["kind"] for each in answer.json()["refused"])
    assert not served.zone.pending()


def test_a_file_is_refused_as_a_whole_and_names_each_record(served: Served) -> None:
    other = PLAN.replace(b"OBJECT_ID = 25544", b"OBJECT_ID = 77777")
    answer = served.client.post("/ephemerides", content=PLAN + other, headers=KVN)
    assert (answer.status_code, [each["record"] for each in answer.json()["refused"]]) == (422, [1])
    assert not served.zone.pending()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/json"}, PLAN, 400),
        ({**KVN, "origin": "http://elsewhere"}, PLAN, 403),
        (KVN, b"", 400),
    ],
)
def test_another_type_another_origin_and_an_empty_body_are_refused(
    served: Served, headers: dict[str, str], body: bytes, status: int
) -> None:
    assert served.client.post("/ephemerides", content=body, headers=headers).status_code == status


@pytest.mark.parametrize("unknown", ["0" * 24, "nothing", "A" * 24, "25544"])
def test_an_unknown_id_is_not_found(served: Served, unknown: str) -> None:
    assert served.client.get(f"/ephemerides/{unknown}").status_code == 404


def test_without_any_screening_a_consumed_submission_is_still_received(served: Served) -> None:
    told = served.client.post("/ephemerides", content=PLAN, headers=KVN).json()
    (sealed,) = served.zone.pending()
    assert sealed.meta is not None
    origin = {"segment_sha256": sealed.meta.sha256, "segment_name": sealed.name}
    commit(served.lake, EPHEMERIDES, [{**each, **origin} for each in decode(PLAN, sealed.meta).to_pylist()])
    found = served.client.get(told["status"]).json()
    assert (found["state"], found["screened_until_utc"], found["conjunctions"]) == ("received", None, [])
    (stated,) = found["ephemerides"]
    assert (stated["norad_id"], stated["usable_until_utc"]) == (25544, "2024-11-01T02:00:00.000Z")


@pytest.mark.parametrize("name", [name for name in SAMPLES if known_format(name).zone == EPHEMERIDES_FEED])
def test_every_landed_ephemeris_is_answered_by_its_hash_whatever_its_format__48(served: Served, name: str) -> None:
    path = served.home / "norad-25544.txt"
    path.write_bytes(SAMPLES[name])
    lander = Lander(str(served.home / "landing"), MissionClock.load(served.home))
    landed = lander.land(path, segment_format=name)
    (sealed,) = served.zone.pending()
    assert sealed.meta is not None
    ids = (landed.sha256, landed.sha256[:24], landed.sha256[:12], sealed.meta.sha256[:24])
    assert [served.client.get(f"/ephemerides/{each}").json()["state"] for each in ids] == ["received"] * 4
    data = served.zone.read(sealed).data
    origin = {"segment_sha256": sealed.meta.sha256, "segment_name": sealed.name}
    commit(served.lake, EPHEMERIDES, [{**each, **origin} for each in decode(data, sealed.meta).to_pylist()])
    served.zone.pending_path(sealed.name).unlink()
    for each in ids:
        assert served.client.get(f"/ephemerides/{each}").json()["ephemerides"]


def test_the_answer_states_what_of_a_submission_is_not_used__41(served: Served) -> None:
    gap = tuple(f"2024-11-01T{hour:02}:{minute:02}".encode() for hour in (0, 1) for minute in range(30, 60))
    data = b"".join(line for line in PLAN.splitlines(keepends=True) if not line.startswith(gap[:-10]))
    assert served.client.post("/ephemerides", content=data, headers=KVN).status_code == 201
    (sealed,) = served.zone.pending()
    assert sealed.meta is not None
    origin = {"segment_sha256": sealed.meta.sha256, "segment_name": sealed.name}
    commit(served.lake, EPHEMERIDES, [{**each, **origin} for each in decode(data, sealed.meta).to_pylist()])
    (stated,) = served.client.get(f"/ephemerides/{sealed.meta.sha256[:24]}").json()["ephemerides"]
    assert [text.partition(": ")[0] for text in stated["parts_not_used"]] == [
        "it is not used from 2024-11-01T00:29:00.000Z to 2024-11-01T01:00:00.000Z",
        "it is not used from 2024-11-01T01:29:00.000Z to 2024-11-01T01:50:00.000Z",
    ]


def test_each_ephemeris_states_what_rests_on_it_and_why_others_do_not() -> None:
    row = {"norad_id": 5, "segment_name": "plan.oem", "record_number": 1}
    pair: dict[str, Any] = {"norad_id_1": 5, "norad_id_2": 9, "ephemeris_id_1": "plan.oem:1", "ephemeris_id_2": None}
    track = {**pair, "ephemeris_id_1": None, "risk_flags": "diluted,ephemeris_less_certain_than_track_1"}
    assert _use(row, [pair, pair]) == {"conjunctions_using_it": 2}
    assert set(_use(row, [pair, track])) == set(OF_CONJUNCTIONS), "what is withheld with the conjunctions"
    assert _use(row, [pair, track]) == {
        "conjunctions_using_it": 1,
        "why_others_do_not": ["its track has a smaller covariance than its ephemeris"],
    }
    assert _use({**row, "record_number": 2}, [track]) | {"why_others_do_not": []} == {
        "conjunctions_using_it": 0, "why_others_do_not": [],
    }  # fmt: skip


def test_an_object_may_be_named_by_its_designator(served: Served) -> None:
    designator = served.client.get("/objects/25544").json()[0]["OBJECT_ID"]
    body = PLAN.replace(b"OBJECT_ID = 25544", f"OBJECT_ID = {designator}".encode())
    assert served.client.post("/ephemerides", content=body, headers=KVN).status_code == 201


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("OBJECT_ID = 25544", "OBJECT_ID = 1998-067Z", "the designator of no object"),
        ("7000.000000000", "nonsense", "X is 'nonsense'"),
    ],
)
def test_what_landed_and_is_not_used_is_never_answered_as_screened(
    served: Served, old: str, new: str, reason: str
) -> None:
    """As `sda land` and folders take files that nobody answers for."""
    data = PLAN.decode().replace(old, new).encode()
    meta = described(data, "ephemerides", segment_format="oem-kvn")
    origin = {"segment_sha256": meta.sha256, "segment_name": "op.oem"}
    commit(served.lake, EPHEMERIDES, [{**each, **origin} for each in decode(data, meta).to_pylist()])
    found = served.client.get(f"/ephemerides/{meta.sha256[:24]}").json()
    assert (found["state"], found["screened_until_utc"], found["conjunctions"]) == ("not_used", None, [])
    (stated,) = found["ephemerides"]
    assert stated["state"] == "not_used"
    assert reason in stated["reason"]


class Screened(SubmittedEphemerides):
    """As after a run: the only submission has a conjunction with an object that another source brought."""

    def find(self, submission_id: str) -> Submission | None:
        del submission_id
        stated = {"norad_id": 25544, "conjunctions_using_it": 1, "why_others_do_not": ["older"]}
        row = {"norad_id_1": 5, "norad_id_2": 25544, "miss_distance_km": 0.2}
        return Submission(SCREENED, [25544], {"ephemerides": [stated]}, [row], lambda _: b"CCSDS_CDM_VERS = 1.0\n")


@pytest.mark.parametrize("limit", ['sources = ["nobody"]', 'may = ["write"]', ""])
@pytest.mark.parametrize("needs_login", [True, False])
def test_conjunctions_are_for_who_may_read_what_every_source_brought(
    limit: str, needs_login: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sources" in limit and not needs_login:
        pytest.skip("such a client is refused when the file is read")
    monkeypatch.setenv("AURORA_TOKEN", TOKENS["AURORA_TOKEN"])
    text = f"[reading]\nneeds_login = {str(needs_login).lower()}\n[clients.aurora]\ntoken_variable = 'AURORA_TOKEN'\n"
    with application_over(tmp_path, clients_of(tmp_path, text + limit)) as (app, lake):
        app.state.submissions = Screened(lake, str(tmp_path / "landing"))
        login = {"authorization": f"Bearer {TOKENS['AURORA_TOKEN']}"}
        with Client(app) as client:
            found = client.get(f"/ephemerides/{'0' * 24}", headers=login)
            messages = client.get(f"/ephemerides/{'0' * 24}?format=kvn", headers=login)
    facts = found.json()
    assert (found.status_code, facts["state"]) == (200, SCREENED)
    is_limited = bool(limit) and needs_login
    assert ("conjunctions" in facts, "withheld" in facts) == (not is_limited, is_limited)
    assert facts["ephemerides"][0].keys() == ({"norad_id"} if is_limited else set(facts["ephemerides"][0]))
    assert messages.status_code == (403 if is_limited else 200)
    assert (b"CCSDS_CDM_VERS" in messages.content) is not is_limited
