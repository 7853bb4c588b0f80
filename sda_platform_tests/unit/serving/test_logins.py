"""Who may read through the endpoint: tokens, sessions, users of the UI, quotas, and what is recorded of them."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sda_platform.resilience import OverQuota, Quotas
from sda_platform.serving.access_log import Access, AccessLog, accesses, newest
from sda_platform.serving.clients import KnownClients, ReadingConfig
from sda_platform.serving.logins import COOKIE, MOST_FAILED, SESSION_S, Sessions
from sda_platform.serving.route import Audience
from sda_platform.serving.routes import ROUTES
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import TOKENS, clients_of, endpoint_over, plan

FILE = """
[clients.aurora]
token_variable = "AURORA_TOKEN"

[clients.survey]
token_variable = "SURVEY_TOKEN"
may = ["write"]

[reading]
needs_login = true
"""
AURORA, SURVEY = TOKENS["AURORA_TOKEN"], TOKENS["SURVEY_TOKEN"]


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownClients:
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    return clients_of(tmp_path, FILE)


def people(authorization: str) -> str | None:
    return "ann" if authorization == basic("ann", "anns-token") else None


def fails(_: object) -> PlainTextResponse:
    raise ValueError("a defect")


def page(_: object) -> PlainTextResponse:
    return PlainTextResponse("a page")


@dataclass
class Endpoint:
    """An endpoint whose readers log in, with a page of a console, and its log of accesses."""

    client: Client
    log: Path

    def get(self, path: str = "/objects/5", authorization: str = "", **headers: str) -> httpx.Response:
        sent = {**({"authorization": authorization} if authorization else {}), **headers}
        return self.client.get(path, headers={name: value.encode("latin-1") for name, value in sent.items()})


@pytest.fixture
def endpoint(tmp_path: Path, clients: KnownClients) -> Iterator[Endpoint]:
    pages, log = [Route("/a-page", page), Route("/fails", fails)], AccessLog(tmp_path / "access")
    with endpoint_over(tmp_path, clients, pages=pages, people=people, log=log) as (client, _):
        yield Endpoint(client, tmp_path / "access")
    log.close()


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(name: str, token: str) -> str:
    return f"Basic {b64encode(f'{name}:{token}'.encode()).decode()}"


@pytest.mark.parametrize(
    "authorization", [bearer(AURORA), basic("aurora", AURORA), basic("ann", "anns-token")], ids=["token", "Basic", "UI"]
)
def test_a_client_and_a_user_of_the_ui_read_everything__44(endpoint: Endpoint, authorization: str) -> None:
    for path in ("/objects/5", "/alerts", "/a-page", "/metrics", "/basicspacedata/query/class/gp/limit/1"):
        assert endpoint.get(path, authorization).status_code == 200, path


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer wrong", "Bearer ", basic("survey", AURORA), basic("ann", "wrong"), "Basic %", bearer("\xe9"), "x"],
)
def test_without_a_login_nothing_but_health_and_description_is_read__44(endpoint: Endpoint, authorization: str) -> None:
    for path in ("/objects/5", "/alerts", "/schedule", "/events", "/states", "/a-page", "/metrics"):
        refused = endpoint.get(path, authorization)
        assert (refused.status_code, "Authorization: Bearer <token>" in refused.json()["error"]) == (401, True), path
    assert endpoint.get("/a-page").headers["www-authenticate"].startswith("Basic realm=")
    assert endpoint.get("/objects/5").headers["www-authenticate"] == "Bearer"
    assert [endpoint.get(path).status_code for path in ("/health", "/openapi.json")] == [200, 200]


def test_every_route_that_reads_needs_the_login_and_its_description_says_so__44(endpoint: Endpoint) -> None:
    paths = endpoint.get("/openapi.json").json()["paths"]
    for route in ROUTES:
        path = route.path.replace("{norad_id}", "5").replace("{predicates}", "class/gp").replace("{name}", "gp")
        path = path.replace("{submission_id}", "0" * 24)
        asked = endpoint.get(path) if route.method == "GET" else endpoint.client.post(path, content=b"")
        is_closed = route.audience is not Audience.EVERYONE
        assert (asked.status_code == 401) == is_closed == ("security" in paths[route.path][route.method.lower()]), path


def test_a_client_does_only_what_it_may__44(endpoint: Endpoint) -> None:
    refused = endpoint.get(authorization=bearer(SURVEY))
    assert refused.status_code == 403
    assert refused.json()["error"] == 'client survey may not read: add "read" to its `may` in the file of clients'
    written = {"content-type": "application/x-ccsds-kvn", "authorization": bearer(SURVEY)}
    taken = endpoint.client.post("/ephemerides", content=plan(5), headers=written)
    assert taken.status_code == 201
    assert endpoint.get(taken.json()["status"], bearer(SURVEY)).status_code == 200
    readers = {**written, "authorization": basic("ann", "anns-token")}
    assert endpoint.client.post("/ephemerides", content=plan(5), headers=readers).status_code == 401


def test_a_client_that_may_not_write_is_refused_with_the_remedy__44(tmp_path: Path, clients: KnownClients) -> None:
    with endpoint_over(tmp_path, clients_of(tmp_path, FILE.replace('["write"]', '["read"]'))) as (client, _):
        sent = {"content-type": "text/plain", "authorization": bearer(SURVEY)}
        refused = client.post("/elements", content=b"x", headers=sent)
        assert (refused.status_code, 'add "write" to its `may`' in refused.json()["error"]) == (403, True)


def test_a_session_of_space_track_reads_and_does_not_write__44(endpoint: Endpoint) -> None:
    def log_in(**form: str) -> httpx.Response:
        return endpoint.client.post("/ajaxauth/login", data=form)

    assert log_in(identity="aurora", password="wrong").json() == {"Login": "Failed"}
    assert COOKIE not in log_in(identity="survey", password=AURORA).cookies
    (cookie,) = log_in(identity="aurora", password=AURORA).headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    over_tls = endpoint.client.post(
        "https://127.0.0.1/ajaxauth/login", data={"identity": "aurora", "password": AURORA}
    ).headers["set-cookie"]
    assert ("Secure" in over_tls, "Secure" in cookie) == (True, False)
    sent = {"cookie": cookie.partition(";")[0]}
    assert endpoint.get("/basicspacedata/query/class/gp/limit/1", **sent).status_code == 200
    put = endpoint.client.post("/elements", content=b"x", headers={**sent, "content-type": "text/plain"})
    assert put.status_code == 401


def test_one_request_logs_in_and_asks__44(endpoint: Endpoint) -> None:
    address = "https://www.space-track.org/basicspacedata/query/class/gp/NORAD_CAT_ID/25544"
    form = {"identity": "aurora", "password": AURORA, "query": address}
    answer = endpoint.client.post("/ajaxauth/login", data=form)
    assert [each["NORAD_CAT_ID"] for each in answer.json()] == ["25544"]
    assert COOKIE in answer.headers["set-cookie"]
    assert answer.headers["cache-control"] == "no-store"
    wrong = endpoint.client.post("/ajaxauth/login", data={**form, "password": "wrong"})
    assert wrong.json() == {"Login": "Failed"}
    for text in ("https://[", "/objects/25544", "/basicspacedata/query/class/gp/COLOUR/red"):
        assert endpoint.client.post("/ajaxauth/login", data={**form, "query": text}).status_code == 400, text


def test_a_session_ends_and_cannot_be_made_up() -> None:
    now_s = 0.0
    sessions = Sessions(lambda: now_s)
    cookie = sessions.begin("aurora")
    assert sessions.name_of(cookie) == "aurora"
    others = [cookie[:-1], cookie.replace("aurora", "survey"), "", ".", "..", "aurora.99999999.", f"{cookie}0", "é"]
    assert [sessions.name_of(each) for each in others] == [None] * len(others)
    assert Sessions(lambda: now_s).name_of(cookie) is None
    now_s = SESSION_S
    assert sessions.name_of(cookie) is None


def test_a_reader_beyond_its_quota_waits_and_others_do_not__44(tmp_path: Path, clients: KnownClients) -> None:
    few = clients_of(tmp_path, FILE + "requests = 2\n")
    with endpoint_over(tmp_path, few, people=people) as (client, _):
        asked = [client.get("/objects/5", headers={"authorization": bearer(AURORA)}) for _ in range(4)]
        assert [each.status_code for each in asked] == [200, 200, 200, 429]
        assert "aurora uses more than 2 requests a minute" in asked[-1].json()["error"]
        assert int(asked[-1].headers["Retry-After"]) > 0
        assert client.get("/objects/5", headers={"authorization": basic("ann", "anns-token")}).status_code == 200
        large = clients_of(tmp_path, FILE + "bytes = 100\n")
    with endpoint_over(tmp_path / "other", large) as (client, _):
        asked = [client.get("/objects", headers={"authorization": bearer(AURORA)}) for _ in range(2)]
        assert [each.status_code for each in asked] == [200, 429]


def test_who_read_and_wrote_what_is_recorded_before_the_answer__44(endpoint: Endpoint) -> None:
    endpoint.get("/objects/5?format=tle", bearer(AURORA))
    endpoint.get("/alerts", basic("ann", "anns-token"))
    endpoint.get("/objects/11")
    headers = {"content-type": "application/x-ccsds-kvn", "authorization": bearer(SURVEY)}
    endpoint.client.post("/ephemerides", content=plan(5), headers=headers)
    endpoint.get("/objects/5", host="evil.example")
    endpoint.get("/nowhere")
    found = [(each.client, each.method, each.target, each.status) for each in accesses(endpoint.log)]
    assert found == [
        ("aurora", "GET", "/objects/5?format=tle", 200),
        ("user ann", "GET", "/alerts", 200),
        ("", "GET", "/objects/11", 401),
        ("survey", "POST", "/ephemerides", 201),
        ("", "GET", "/objects/5", 403),
        ("", "GET", "/nowhere", 404),
    ]
    assert [each.target for each in newest(endpoint.log, 5, client="aurora")] == ["/objects/5?format=tle"]
    assert [each.client for each in newest(endpoint.log, 5, writes=True)] == ["survey"]
    assert [each.status for each in newest(endpoint.log, 1, text="/objects/5")] == [403]
    assert not any(token in (endpoint.log / "access.jsonl").read_text() for token in TOKENS.values())


def test_what_cannot_be_recorded_is_not_answered__44(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AccessLog, "record", full)
    refused = endpoint.get(authorization=bearer(AURORA))
    assert (refused.status_code, refused.json()["error"].startswith("the log of accesses cannot be written")) == (
        503,
        True,
    )


def test_what_the_program_fails_at_is_recorded_too__44(endpoint: Endpoint) -> None:
    with pytest.raises(ValueError, match="a defect"):
        endpoint.get("/fails", bearer(AURORA))
    assert [(each.client, each.target, each.status) for each in accesses(endpoint.log)] == [("aurora", "/fails", 500)]


def test_requests_are_counted_by_handler_client_and_status__44(endpoint: Endpoint) -> None:
    for authorization in (bearer(AURORA), bearer(AURORA), ""):
        endpoint.get(authorization=authorization)
    text = endpoint.get("/metrics", bearer(AURORA)).text
    assert 'http_requests_total{client="aurora",handler="one_object",status="200"} 2.0' in text
    assert 'http_requests_total{client="",handler="one_object",status="401"} 1.0' in text
    assert 'http_request_seconds_count{handler="one_object"} 3.0' in text
    assert 'http_sent_bytes_total{handler="one_object"}' in text


def test_on_loopback_without_named_clients_everyone_reads_as_before(tmp_path: Path) -> None:
    with endpoint_over(tmp_path, pages=[Route("/a-page", page)]) as (client, _):
        for path in ("/objects/5", "/a-page", "/metrics", "/alerts"):
            assert client.get(path).status_code == 200, path
        form = {"identity": "me", "password": "any"}
        assert client.post("/ajaxauth/login", data=form).json() == ""


def test_the_log_of_accesses_is_bounded_and_survives_a_torn_line(tmp_path: Path) -> None:
    access = Access("2024-11-01T00:00:00.000+00:00", "a", "127.0.0.1", "GET", "/", 200, 5, 0.001)
    log = AccessLog(tmp_path, most_bytes=1_000, most_files=3)
    for number in range(100):
        log.record(replace(access, target=f"/{number}"))
    files = sorted(each.name for each in tmp_path.iterdir())
    assert len(files) == 3
    assert all(each.stat().st_size <= 1_000 for each in tmp_path.iterdir())
    kept = [int(each.target[1:]) for each in accesses(tmp_path)]
    assert kept == list(range(100 - len(kept), 100))
    log.close()
    with (tmp_path / "access.jsonl").open("ab") as torn:
        torn.write(b'{"at_utc": "2024')
    again = AccessLog(tmp_path, most_bytes=1_000, most_files=3)
    again.record(replace(access, target="/100"))
    again.sync()
    again.close()
    assert [int(each.target[1:]) for each in accesses(tmp_path)][-2:] == [99, 100]
    assert json.loads((tmp_path / "access.jsonl").read_bytes().splitlines()[-1])["target"] == "/100"


def test_a_peer_that_guesses_waits_and_one_with_a_right_login_does_not__44(endpoint: Endpoint) -> None:
    now_s = 0.0
    failures = endpoint.client.app.state.failed_logins = Quotas({"failed logins": MOST_FAILED}, lambda: now_s)
    guesses: list[Callable[[], httpx.Response]] = [
        lambda: endpoint.get("/objects/5", authorization="Bearer wrong"),
        lambda: endpoint.get("/objects/5", authorization="Basic YTpi"),
        lambda: endpoint.client.post("/elements", content=b"x", headers={"authorization": "Bearer wrong"}),
        lambda: endpoint.client.post("/ajaxauth/login", data={"identity": "aurora", "password": "wrong"}),
    ]
    for guess in guesses:
        now_s += 3_600
        answers = [guess() for _ in range(MOST_FAILED + 2)]
        assert [each.status_code == 429 for each in answers] == [False] * (MOST_FAILED + 1) + [True]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        for right in (bearer(AURORA), basic("ann", "anns-token")):
            assert endpoint.get("/objects/5", authorization=right).status_code == 200, "others may be the same peer"
        assert endpoint.get("/health").status_code == 200
        assert endpoint.get("/objects/5").status_code == 401, "who sends no login is no guess"
        now_s += 60
        assert endpoint.get("/objects/5", authorization=f"Bearer {AURORA}").status_code == 200
    failures.require("192.0.2.1")


def test_accounts_of_peers_are_bounded() -> None:
    quotas = Quotas({"failed logins": 1}, lambda: 0.0, most=2)
    for peer in ("a", "b", "c"):
        quotas.spend(peer, **{"failed logins": 5})
    quotas.require("a")
    for peer in ("b", "c"):
        with pytest.raises(OverQuota):
            quotas.require(peer)


@pytest.mark.parametrize(
    ("stated", "by_others", "is_declared_open", "needs_login"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (None, True, True, False),
        (False, True, False, False),
        (True, True, True, True),
        (True, False, False, True),
    ],
)
def test_reading_needs_a_login_where_others_reach_the_endpoint__44(
    stated: bool | None, by_others: bool, is_declared_open: bool, needs_login: bool
) -> None:
    named = KnownClients(reading=ReadingConfig(needs_login=stated))
    found = named.reached(by_others=by_others, is_declared_open=is_declared_open)
    assert (found.reading.needs_login, found.is_open) == (needs_login, not by_others)
