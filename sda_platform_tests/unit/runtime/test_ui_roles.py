"""Roles at the real webserver of Dagster: what each may execute, however the request is written, and who gets in."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from dagster._core.workspace.permissions import Permissions
from dagster_graphql.schema import create_schema
from graphql import GraphQLInputObjectType, GraphQLList, GraphQLNonNull
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from sda_platform.http_deadline import with_deadline
from sda_platform.runtime import ui_roles, webserver
from sda_platform.runtime.role_webserver import RoleWebserver
from sda_platform.runtime.ui_roles import PROBES, Role
from sda_platform.runtime.ui_users import Users, UsersError, new_user
from sda_platform.runtime.webserver import MOST_BODY_BYTES
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.served_ui import PROBE_TOKEN, served, ui, users_file

VIEWS = {"logTelemetry", "setNuxSeen"}
OPERATES = VIEWS | {
    "launchRun", "launchPipelineExecution", "launchMultipleRuns", "launchRunReexecution", "launchPipelineReexecution",
    "launchPartitionBackfill", "resumePartitionBackfill", "reexecutePartitionBackfill", "cancelPartitionBackfill",
    "terminateRun", "terminatePipelineExecution", "terminateRuns", "startSchedule", "resetSchedule",
    "stopRunningSchedule", "scheduleDryRun", "startSensor", "stopSensor", "resetSensor", "sensorDryRun",
}  # fmt: skip
REFUSED = "the role viewer may not"


FIELD = "reloadWorkspace { __typename }"
RELOAD = f"mutation {{ {FIELD} }}"
_CHANGES = "subscription { locationStateChangeEvents { __typename } }"


def basic(name: str, token: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{token}".encode()).decode()}


class Sender:
    """Sends requests to the UI at ``port`` with the token of a role."""

    def __init__(self, port: int, tokens: dict[str, str]) -> None:
        self.address, self.tokens = f"127.0.0.1:{port}", tokens

    def ask(self, role: str, query: str, **more: object) -> str:
        answer = self.post(json.dumps({"query": query, **more}), basic(role, self.tokens[role]))
        assert (answer.status_code == 403) is ("may not" in answer.text), "a refusal is no failure of the server"
        return answer.text

    def post(self, body: str | bytes, headers: Any, path: str = "/graphql") -> httpx.Response:
        headers = httpx.Headers(headers)
        headers.setdefault("content-type", "application/json")
        return httpx.post(f"http://{self.address}{path}", content=body, headers=headers)

    def opened(self, role: str) -> ClientConnection:
        """A WebSocket."""
        headers = basic(role, self.tokens[role])
        return connect(f"ws://{self.address}/graphql", additional_headers=headers, subprotocols=["graphql-ws"])  # type: ignore[list-item]

    def subscribe(self, role: str, query: str) -> dict[str, Any]:
        """The first answer to the start of a subscription."""
        with self.opened(role) as page:
            page.send(json.dumps({"type": "connection_init"}))
            page.recv()
            page.send(json.dumps({"type": "start", "id": "1", "payload": {"query": query}}))
            page.send(json.dumps({"type": "connection_init"}))  # is answered in any case
            return dict(json.loads(page.recv()))


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    directory = tmp_path_factory.mktemp("ui")
    tokens = users_file(directory)
    with ui(directory) as app, served(app) as port:
        yield Sender(port, tokens)


def sample(kind: Any) -> Any:
    """A value that a type of Dagster's schema takes."""
    if isinstance(kind, GraphQLNonNull):
        return sample(kind.of_type)
    if isinstance(kind, GraphQLList):
        return []
    if isinstance(kind, GraphQLInputObjectType):
        needed = {name: each.type for name, each in kind.fields.items() if isinstance(each.type, GraphQLNonNull)}
        return {name: sample(each) for name, each in needed.items()}
    if hasattr(kind, "values"):
        return next(iter(kind.values))
    return {"Boolean": False, "Int": 1, "Float": 1.0}.get(kind.name, "x")


@cache
def mutations() -> dict[str, tuple[str, dict[str, Any]]]:
    """A document and variables for each mutation of Dagster's schema, by its name."""
    schema = create_schema().graphql_schema.mutation_type
    assert schema is not None
    found = {}
    for name, field in schema.fields.items():
        needed = {key: each.type for key, each in field.args.items() if isinstance(each.type, GraphQLNonNull)}
        declared = ", ".join(f"${key}: {kind}" for key, kind in needed.items())
        passed = ", ".join(f"{key}: ${key}" for key in needed)
        chosen = " { __typename }" if "Boolean" not in str(field.type) else ""
        document = f"mutation M{declared and f'({declared})'} {{ {name}{passed and f'({passed})'}{chosen} }}"
        found[name] = (document, {key: sample(kind) for key, kind in needed.items()})
    return found


@pytest.mark.parametrize(("role", "allowed"), [("viewer", VIEWS), ("operator", OPERATES), ("admin", None)])
def test_each_mutation_of_dagster_is_executed_for_the_roles_that_may(
    sender: Sender, role: str, allowed: set[str] | None
) -> None:
    found = mutations()
    answers = {name: sender.ask(role, document, variables=values) for name, (document, values) in found.items()}
    unread = {name: text for name, text in answers.items() if '"data":null' in text and "may not" not in text}
    assert not {name for name, text in unread.items() if '"path"' not in text}, "Dagster has read each of them"
    refused = {name for name, text in answers.items() if f"the role {role} may not {name}" in text}
    assert refused == (set() if allowed is None else set(found) - allowed)
    assert set(found) >= OPERATES, "a name of the list that Dagster does not have"


@pytest.mark.parametrize(
    "query",
    [
        "mutation { version: reloadWorkspace { __typename } }",
        "mutation { ...on Mutation { reloadWorkspace { __typename } } }",
        f"mutation {{ ...Part }} fragment Part on Mutation {{ ...Rest }} fragment Rest on Mutation {{ {FIELD} }}",
        "mutation M($yes: Boolean = true) { reloadWorkspace @include(if: $yes) { __typename } }",
        "mutation { setNuxSeen reloadWorkspace { __typename } }",
        "query M { version } mutation N { reloadWorkspace { __typename } }",
        '"""a text"""\nmutation N { reloadWorkspace { __typename } }',
        "\ufeff mutation # comment {\n { reloadWorkspace { __typename } }",
    ],
    ids=["alias", "inline fragment", "fragments", "directive", "second field", "second operation", "text", "marks"],
)
def test_no_way_to_write_a_mutation_leads_past_the_role(sender: Sender, query: str) -> None:
    more = {"operationName": "N"} if "mutation N" in query else {}
    text = sender.ask("viewer", query, **more)
    assert REFUSED in text or "Syntax Error" in text
    assert '"Workspace"' not in text


def test_lists_of_queries_other_cases_and_other_bodies_execute_nothing(sender: Sender) -> None:
    viewer = basic("viewer", sender.tokens["viewer"])
    assert sender.post(json.dumps([{"query": RELOAD}]), viewer).status_code == 500
    for query in (RELOAD.replace("reload", "Reload"), RELOAD.replace("mutation", "MUTATION")):
        assert sender.post(json.dumps({"query": query}), viewer).status_code == 400
    for kind in (
        "application/graphql", "text/plain", "application/json-patch+json", "APPLICATION/JSON",
        "application/json; application/graphql",
    ):  # fmt: skip
        assert sender.post(RELOAD, {**viewer, "Content-Type": kind}).status_code == 415
    twice = [*viewer.items(), ("Content-Type", "application/graphql"), ("Content-Type", "application/json")]
    assert sender.post(RELOAD, twice).status_code == 403
    for path in (
        "/report_asset_materialization/a/graphql",
        "/graphql/",
        "/report_asset_materialization/a",
        "/report_asset_check/a",
        "/report_asset_observation/a",
        "/x",
    ):
        answer = sender.post("{}", viewer, path)
        assert (answer.status_code, answer.json()) == (403, {"error": f"{REFUSED} do that"}), path


@pytest.mark.parametrize("path", ["/notebook", "/dagit/notebook"])
def test_no_file_is_shown_as_a_notebook(sender: Sender, path: str) -> None:
    asked = {"repoLocName": "sda_platform", "path": "/etc/x.ipynb"}
    admin = basic("admin", sender.tokens["admin"])
    answer = httpx.get(f"http://{sender.address}{path}", params=asked, headers=admin)
    assert (answer.status_code, answer.text) == (404, "no asset of this platform is a notebook")


_LAUNCH = """mutation L($it: ExecutionParams!) { launchRun(executionParams: $it) { __typename } }"""
_CONFIGURED = "with a configuration of its own"


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({}, ""),
        ({"runConfigData": "{}"}, ""),
        ({"runConfigData": {"resources": {"lake": {"config": {"uri": "/tmp"}}}}}, _CONFIGURED),
        ({"runConfigData": "resources: {}"}, _CONFIGURED),
        ({"executionMetadata": {"tags": [{"key": "night", "value": "1"}]}}, ""),
    ],
)
def test_an_operator_starts_jobs_as_they_are(sender: Sender, more: dict[str, Any], refused: str) -> None:
    selector = {"repositoryLocationName": "x", "repositoryName": "x", "pipelineName": "x"}
    variables = {"it": {"selector": selector, **more}}
    text = sender.ask("operator", _LAUNCH, variables=variables)
    assert "Syntax" not in text and ("may not launchRun" in text) is bool(refused) and refused in text
    assert "may not" not in sender.ask("admin", _LAUNCH, variables=variables)
    several = "mutation L($them: [ExecutionParams!]!) { launchMultipleRuns(executionParamsList: $them) { __typename } }"
    text = sender.ask("operator", several, variables={"them": [{"selector": selector}, variables["it"]]})
    assert ("may not launchMultipleRuns" in text) is bool(refused), text


def test_a_body_states_its_length_and_no_page_frames_the_ui(sender: Sender) -> None:
    admin = basic("admin", sender.tokens["admin"])
    assert sender.post(b"x" * (MOST_BODY_BYTES + 1), admin).status_code == 413
    url, kind = f"http://{sender.address}/graphql", {"Content-Type": "application/json"}
    assert httpx.post(url, content=iter([b"{}"]), headers={**admin, **kind}).status_code == 413
    assert httpx.get(f"http://{sender.address}/", headers=admin).headers["x-frame-options"] == "SAMEORIGIN"


def test_a_websocket_outlives_the_deadline_of_headers(tmp_path: Path) -> None:
    closing = threading.Event()
    protocol = type("Closing", (with_deadline(headers_s=0.5),), {"_close": lambda _: closing.set()})
    with (
        ui(tmp_path, has_users=False) as app,
        served(app, protocol) as port,
        connect(f"ws://127.0.0.1:{port}/graphql", subprotocols=["graphql-ws"]) as page,  # type: ignore[list-item]
    ):
        assert not closing.wait(0.7)
        page.send(json.dumps({"type": "connection_init"}))
        assert json.loads(page.recv()) == {"type": "connection_ack"}


def test_a_body_that_trickles_in_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webserver, "BODY_S", 0.05)

    async def never() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def play() -> None:
        with pytest.raises(TimeoutError):
            await webserver._within(never)()

    asyncio.run(play())


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_a_subscription_shows_and_executes_no_mutation(sender: Sender, role: str) -> None:
    found = sender.subscribe(role, RELOAD)
    assert found["type"] == "error" and "subscription field" in found["payload"]["message"]
    assert sender.subscribe(role, _CHANGES) == {"type": "connection_ack"}


@pytest.mark.parametrize("name", ["viewer", "admin"])
def test_a_connection_ends_when_its_user_or_role_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(webserver, "RECHECK_S", 0.02)
    tokens = users_file(tmp_path)
    with ui(tmp_path) as app, served(app) as port, Sender(port, tokens).opened(name) as page:
        page.send(json.dumps({"type": "connection_init"}))
        page.recv()
        page.send(json.dumps({"type": "start", "id": "1", "payload": {"query": _CHANGES}}))
        with pytest.raises(TimeoutError):
            page.recv(timeout=0.1)  # it stays open as long as the user is known
        file = tmp_path / "users.toml"
        file.write_text(
            file.read_text().replace('role = "admin"', 'role = "operator"').replace("[users.viewer]", "[users.x]")
        )
        with pytest.raises(ConnectionClosed) as ended:
            page.recv(timeout=20)
    assert ended.value.rcvd is not None and ended.value.rcvd.code == 1008


def test_who_has_no_token_gets_nothing_but_the_probe_for_life(sender: Sender) -> None:
    tokens = sender.tokens
    bad = [
        {},
        basic("viewer", ""),
        basic("viewer", tokens["viewer"][:-1]),
        basic("viewer", tokens["admin"]),
        basic("nobody", tokens["viewer"]),
        basic("", ""),
        basic("VIEWER", tokens["viewer"]),
        basic(PROBES, ""),
        {"Authorization": f"Bearer {tokens['admin']}"},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic /w=="},
        {"Authorization": tokens["admin"]},
    ]
    for headers in bad:
        answer = sender.post(json.dumps({"query": "{version}"}), headers)
        assert answer.status_code == 401 and "Basic realm" in answer.headers["www-authenticate"], headers
        for path in (
            "/",
            "/graphql",
            "/logs/x",
            "/download_debug/x",
            "//server_info",
            "/server_info/",
            "/%2e/server_info",
        ):
            assert httpx.get(f"http://{sender.address}{path}", headers=headers).status_code == 401, path
        with (
            pytest.raises(InvalidStatus, match="403"),
            connect(f"ws://{sender.address}/graphql", additional_headers=headers),
        ):
            pass
    assert httpx.get(f"http://{sender.address}/server_info").status_code == 200
    twice = [*basic("viewer", tokens["viewer"]).items(), *basic("admin", tokens["admin"]).items()]
    assert sender.post(json.dumps({"query": RELOAD}), twice).status_code == 403
    assert REFUSED in sender.ask(PROBES, RELOAD)


def test_the_page_works_behind_the_login_its_websocket_included(sender: Sender) -> None:
    url = f"http://{sender.address}"
    opening = """async () => await new Promise((done) => {
        const s = new WebSocket(location.origin.replace("http", "ws") + "/graphql", "graphql-ws");
        s.onopen = () => done("open"); s.onerror = () => done("refused"); })"""
    with opened(url, (1200, 800), login=("viewer", sender.tokens["viewer"])) as page:
        page.goto("/runs")
        page.sees("Runs")
        assert page.run(opening) == "open"
    with opened(url, (1200, 800), login=("viewer", "wrong")) as page:
        page.goto("/runs")
        assert "a login is needed" in page.text


@pytest.mark.parametrize("is_walled", [True, False])
def test_no_text_makes_a_page_of_the_ui_ask_another_server__S1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_walled: bool
) -> None:
    """An image in what the UI renders, whose redirect would change something here; without the wall it is asked for."""
    reached = list[str]()

    async def attacker(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    if not is_walled:
        monkeypatch.delattr(RoleWebserver, "make_csp_header")
    with served(attacker) as elsewhere:
        code = tmp_path / "defs.py"
        text = f"seen ![](http://127.0.0.1:{elsewhere}/image) "
        code.write_text(f"import dagster as dg\n\n@dg.asset(description={text!r})\ndef named(): ...\n")
        with (
            ui(tmp_path, has_users=False, code=code) as app,
            served(app) as port,
            opened(f"http://127.0.0.1:{port}", (1200, 800)) as page,
        ):
            page.goto("/assets/named?view=overview")
            page.sees("seen")
            page.settle()
    assert reached == ([] if is_walled else ["/image"])


def test_the_ui_shows_the_permissions_of_the_role(sender: Sender) -> None:
    def shown(role: str) -> set[str]:
        answer = json.loads(sender.ask(role, "{ permissions { permission value } }"))
        return {each["permission"] for each in answer["data"]["permissions"] if each["value"]}

    assert shown("viewer") == set()
    assert shown("operator") == {str(each) for each in Permissions} & set(ui_roles._OPERATORS)
    assert set(ui_roles._OPERATORS) <= {str(each) for each in Permissions} and "wipe_assets" in shown("admin")


def test_without_users_everybody_has_the_role_of_the_address(tmp_path: Path) -> None:
    for anyone, refused in ((Role.VIEWER, True), (Role.ADMIN, False)):
        with ui(tmp_path, has_users=False, anyone=anyone) as app, served(app) as port:
            assert (REFUSED in Sender(port, {"x": ""}).ask("x", RELOAD)) is refused


def test_who_is_removed_is_refused_at_once_and_a_broken_file_lets_nobody_in(tmp_path: Path) -> None:
    tokens, file = users_file(tmp_path), tmp_path / "users.toml"
    users, admin = Users(file, PROBE_TOKEN), basic("admin", tokens["admin"])["Authorization"]
    assert users.of(admin) == ui_roles.User("admin", Role.ADMIN)
    token, section = new_user("carol", "operator")
    file.write_text(section)
    assert users.of(admin) is None
    assert users.of(basic("carol", token)["Authorization"]) == ui_roles.User("carol", Role.OPERATOR)
    for text in ("users = ", "", "[users.carol]\nrole = 'root'\ntoken_sha256 = ''"):
        file.write_text(text)
        for _ in range(2):
            with pytest.raises(UsersError):
                users.of(basic("carol", token)["Authorization"])
    file.unlink()
    assert users.of(basic("carol", token)["Authorization"]) is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    token = users_file(tmp_path)["admin"]
    known = Users(tmp_path / "users.toml", PROBE_TOKEN)
    (tmp_path / "users.toml").chmod(mode)
    with pytest.raises(UsersError, match="chmod go-w"):
        Users(tmp_path / "users.toml", PROBE_TOKEN)
    with pytest.raises(UsersError, match="chmod go-w"):  # it became so while the UI ran
        known.of(basic("admin", token)["Authorization"])


def test_a_token_is_random_and_the_file_does_not_hold_it() -> None:
    made = [new_user("alice", "viewer") for _ in range(20)]
    assert len({token for token, _ in made}) == 20 and all(len(token) >= 43 for token, _ in made)
    assert not any(token in section for token, section in made)
    for name in ("", "Alice", "a b", "a]\n[users.eve", PROBES, "a\n"):
        with pytest.raises(UsersError):
            new_user(name, "viewer")
