"""Who may write through the endpoint: tokens, objects, and files of clients that cannot be used."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from sda_platform.catalog.ephemeris_decoding import decode, decoder
from sda_platform.catalog.tables import EPHEMERIDES
from sda_platform.formats.segments import Origin, SegmentMeta
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform.serving.clients import ClientsError, KnownClients, load_clients
from sda_platform.serving.submissions import ID_DIGITS
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import FILE, TOKENS, clients_of, endpoint_over, plan


@dataclass
class Endpoint:
    """An endpoint over the lake below ``home``."""

    client: Client
    home: Path
    lake: Lake

    def submit(self, norad_id: int, token: str | None = None) -> httpx.Response:
        return self.client.post("/ephemerides", content=plan(norad_id), headers=headers(token))

    def put(self, norad_id: int, token: str | None = None) -> httpx.Response:
        (found,) = self.client.get(f"/objects/{norad_id}").json()
        answer = {name: value for name, value in found.items() if value is not None}
        return self.client.post("/elements", json=[answer], headers=headers(token, "application/json"))

    @property
    def submitted(self) -> list[SegmentMeta]:
        return self._pending("ephemerides")

    @property
    def landed(self) -> int:
        return len(self.submitted) + len(self.of_sets)

    @property
    def of_sets(self) -> list[SegmentMeta]:
        return self._pending("elements")

    def _pending(self, feed: str) -> list[SegmentMeta]:
        zone = LandingZone(str(self.home / "landing"), feed)
        return [each.meta for each in zone.pending() if each.meta]


def headers(token: str | None, media_type: str = "application/x-ccsds-kvn") -> dict[str, str]:
    return {"content-type": media_type} | ({"authorization": f"Bearer {token}"} if token else {})


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownClients:
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    return clients_of(tmp_path)


@pytest.fixture
def endpoint(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    named = getattr(request, "param", None) or request.getfixturevalue("clients")
    with endpoint_over(tmp_path, named) as (client, lake):
        yield Endpoint(client, tmp_path, lake)


def test_a_client_writes_for_its_own_objects_only(endpoint: Endpoint) -> None:
    aurora = TOKENS["AURORA_TOKEN"]
    for write in (endpoint.submit, endpoint.put):
        answer = write(5, aurora)
        assert (answer.status_code, answer.json()["error"]) == (403, "client aurora may not write for object 5")
    assert endpoint.landed == 0
    assert endpoint.submit(25544, aurora).status_code == 201
    assert endpoint.put(25544, aurora).status_code == 200
    assert (len(endpoint.submitted), endpoint.landed) == (1, 2)


def test_a_client_takes_no_designator_of_an_object_that_is_not_its_own(endpoint: Endpoint) -> None:
    (own,), (other,) = (endpoint.client.get(f"/objects/{number}").json() for number in (25544, 5))
    sent = {name: value for name, value in own.items() if value is not None} | {"OBJECT_ID": other["OBJECT_ID"].lower()}
    of_aurora = headers(TOKENS["AURORA_TOKEN"], "application/json")
    for content in (sent, {**sent, "OBJECT_ID": own["OBJECT_ID"]}, {**sent, "OBJECT_ID": "2031-099Z"}):
        answer = endpoint.client.post("/elements", json=[content], headers=of_aurora)
        is_taken = content is not sent
        assert answer.status_code == (200 if is_taken else 403), answer.text
        assert is_taken or "may not write for object 5" in answer.text


def test_a_client_takes_no_number_of_a_navigation_satellite_that_is_not_its_own(endpoint: Endpoint) -> None:
    """Files of precise orbits name satellites so: with two of one number they would be refused."""
    tokens = {name: headers(TOKENS[f"{name}_TOKEN"], "application/json") for name in ("AURORA", "SURVEY")}
    sets = {number: endpoint.client.get(f"/objects/{number}").json()[0] for number in (25544, 5)}
    sent = {
        number: {name: value for name, value in found.items() if value is not None} for number, found in sets.items()
    }
    written = (
        ("SURVEY", 5, "GPS BIIF-2 (PRN 1)", 200),
        ("AURORA", 25544, "GPS BIIF-9 (PRN 01)", 403),
        ("AURORA", 25544, "GPS BIIF-9 (PRN 02)", 200),
        ("AURORA", 25544, "GPS BIIF-9 (PRN 02)", 200),
    )
    for client, number, name, status in written:
        later = {**sent[number], "OBJECT_NAME": name, "EPOCH": f"{sent[number]['EPOCH'][:-1]}9"}
        answer = endpoint.client.post("/elements", json=[later], headers=tokens[client])
        assert answer.status_code == status, answer.text


def test_what_a_client_writes_states_it_with_its_address_and_rank__F1_18(endpoint: Endpoint) -> None:
    assert endpoint.submit(25544, TOKENS["AURORA_TOKEN"]).status_code == 201
    assert endpoint.put(25544, TOKENS["AURORA_TOKEN"]).status_code == 200
    assert endpoint.put(11, TOKENS["SURVEY_TOKEN"]).status_code == 200
    of_aurora = Origin(1, "aurora", "127.0.0.1", rank=30)
    assert [each.origins for each in endpoint.submitted] == [(replace(of_aurora, norad_ids=(25544,)),)]
    assert {each.origins for each in endpoint.of_sets} == {(of_aurora,), (Origin(1, "survey", "127.0.0.1"),)}


def test_an_ephemeris_stays_that_of_the_object_for_which_it_was_taken(endpoint: Endpoint) -> None:
    """The edit of a catalogue may give its designator to another object before a run decodes it."""
    (own,) = endpoint.client.get("/objects/25544").json()
    body = plan(25544).replace(b"OBJECT_ID = 25544", f"OBJECT_ID = {own['OBJECT_ID']}".encode())
    answer = endpoint.client.post("/ephemerides", content=body, headers=headers(TOKENS["AURORA_TOKEN"]))
    assert answer.status_code == 201, answer.text
    (meta,) = endpoint.submitted
    for number, reason in ((25544, None), (5, "it is now of object 5, and was taken for 25544")):
        numbers = {own["OBJECT_ID"]: [number]}
        (row,) = decoder(numbers.__getitem__)(body, meta).to_pylist()
        assert (row["norad_id"], row["error"] and row["error"].partition(": ")[2]) == (
            None if reason else number,
            reason,
        )


def test_a_client_beyond_its_quota_is_refused_and_others_are_not__S6(tmp_path: Path, clients: KnownClients) -> None:
    few = clients_of(tmp_path, FILE + "[quota]\nrecords = 1\n")
    aurora, survey = TOKENS["AURORA_TOKEN"], TOKENS["SURVEY_TOKEN"]
    with endpoint_over(tmp_path, few) as (client, lake):
        endpoint = Endpoint(client, tmp_path, lake)
        assert endpoint.put(25544, aurora).status_code == 200
        assert endpoint.submit(25544, aurora).status_code == 201
        for refused in (endpoint.put(25544, aurora), endpoint.submit(25544, aurora)):
            assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
            assert "aurora uses more than 1 records a minute" in refused.json()["error"]
        assert endpoint.put(11, survey).status_code == 200
        assert client.get("/objects/5").status_code == 200


def test_a_client_without_objects_writes_for_all(endpoint: Endpoint) -> None:
    survey = TOKENS["SURVEY_TOKEN"]
    assert endpoint.submit(5, survey).status_code == 201
    assert endpoint.put(11, survey).status_code == 200


@pytest.mark.parametrize("token", [None, "wrong", "aurora-012345678", "aurora-01234567890"])
def test_without_a_token_nothing_is_written_and_lookups_are_answered(endpoint: Endpoint, token: str | None) -> None:
    for write in (endpoint.submit, endpoint.put):
        answer = write(25544, token)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "Authorization: Bearer <token>" in answer.json()["error"]
    assert endpoint.landed == 0
    assert endpoint.client.get("/objects/5").status_code == 200


def test_the_openapi_document_declares_the_login_of_each_route_that_needs_it(endpoint: Endpoint) -> None:
    document = endpoint.client.get("/openapi.json").json()
    ((name, scheme),) = document["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    operations = [
        (method, path.replace("{norad_id}", "5").replace("{submission_id}", "0" * 16), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    for method, path, operation in operations:
        answer = endpoint.client.get(path) if method == "get" else endpoint.client.post(path, content=b"")
        assert (answer.status_code == 401) == ("security" in operation), (method, path, answer.status_code)
        assert operation.get("security", [{name: []}, {}]) == [{name: []}, {}]


def test_what_became_of_a_submission_is_told_to_its_client_only(endpoint: Endpoint) -> None:
    where = endpoint.submit(25544, TOKENS["AURORA_TOKEN"]).json()["status"]
    assert endpoint.client.get(where).status_code == 401
    assert endpoint.client.get(where, headers=headers(TOKENS["AURORA_TOKEN"])).json()["state"] == "received"
    other = endpoint.submit(5, TOKENS["SURVEY_TOKEN"]).json()["status"]
    (sealed,) = [each for each in endpoint.submitted if other.endswith(each.sha256[:ID_DIGITS])]
    origin = {"segment_sha256": sealed.sha256, "segment_name": "submitted.oem"}
    commit(endpoint.lake, EPHEMERIDES, [{**each, **origin} for each in decode(plan(5), sealed).to_pylist()])
    assert endpoint.client.get(other, headers=headers(TOKENS["AURORA_TOKEN"])).status_code == 403
    assert endpoint.client.get(other, headers=headers(TOKENS["SURVEY_TOKEN"])).status_code == 200


@pytest.mark.parametrize("endpoint", [KnownClients(is_open=False)], indirect=True)
def test_an_endpoint_that_other_machines_reach_takes_nothing_without_named_clients(endpoint: Endpoint) -> None:
    answer = endpoint.submit(25544, "anything")
    assert answer.status_code == 403
    assert "SDA_SERVING_CLIENTS" in answer.json()["error"]
    assert endpoint.landed == 0


@pytest.mark.parametrize("endpoint", [KnownClients()], indirect=True)
def test_on_loopback_without_named_clients_everyone_writes(endpoint: Endpoint) -> None:
    assert endpoint.submit(25544).status_code == 201


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[clients", "is no TOML"),
        ("", "clients: Field required"),
        ("[clients]", "clients: Dictionary should have at least 1 item"),
        ("[clients.a]", "clients.a.token_variable: Field required"),
        (
            '[clients.a]\ntoken_variable = "AURORA_TOKEN"\ntoken = "x"',
            "clients.a.token: Extra inputs are not permitted",
        ),
        ('[clients.a]\ntoken_variable = "AURORA_TOKEN"\nnorad_ids = [0]', "should be greater than 0"),
        ('[clients.a]\ntoken_variable = "NO_SUCH_VARIABLE"', "in the environment variable NO_SUCH_VARIABLE"),
        (FILE + '[clients.b]\ntoken_variable = "AURORA_TOKEN"', "clients.b has the token of aurora"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(
    clients: KnownClients, tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ClientsError) as error:
        clients_of(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "clients.toml"))
    assert reason in str(error.value)
    assert not any(token in str(error.value) for token in TOKENS.values())


def test_a_file_that_others_may_write_names_no_clients(tmp_path: Path, clients: KnownClients) -> None:
    path = tmp_path / "clients.toml"
    path.chmod(0o666)
    with pytest.raises(ClientsError, match=r"others may write it \(mode 0666\)"):
        load_clients(path)
    path.chmod(0o644)
    assert load_clients(path) == clients


@pytest.mark.parametrize("text", ["a = " + 5_000 * "9", "a = " + 100_000 * "["], ids=["a long number", "nesting"])
def test_toml_that_python_cannot_read_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ClientsError, match=r"clients\.toml: is no TOML"):
        clients_of(tmp_path, text)


def test_a_missing_file_and_a_short_token_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClientsError, match="cannot be read: No such file"):
        load_clients(tmp_path / "nowhere.toml")
    monkeypatch.setenv("AURORA_TOKEN", "short")
    with pytest.raises(ClientsError, match="at least 16 characters"):
        clients_of(tmp_path)
