"""The page of what listens: each module that opens a listening socket has a row, and each row names such a module."""

import ast
import re
from pathlib import Path

import pytest

from sda_platform.settings import Settings, declared_settings
from sda_platform_tests.support import sockets
from sda_platform_tests.support.access_page import rows

PACKAGE = Path(__file__).parents[2] / "sda_platform"
LISTENING = {
    "create_server", "start_server", "create_datagram_endpoint", "start_unix_server", "bind", "listen", "Listener",
    "HTTPServer", "ThreadingHTTPServer", "Pages", "HttpServer",
}  # fmt: skip
STARTING = {"grpc", "dagster_webserver", "server_command"}
"""What a command line of another program that listens has."""
NO_LISTENERS = {
    "runtime/processes.py": "binds for a moment, to find a free port",
    "runtime/watchdog.py": "serves the pages of runtime/pages.py",
    "runtime/run_workers.py": "listens at the socket of runtime/worker_socket.py",
    "runtime/sqlite_storage.py": "listens to the events of SQLAlchemy",
    "runtime/class_archive.py": "starts the engine for a moment, during set-up: the row of the Spark Connect server",
    "ground/faulty_link.py": "passes on to a rehearsed station, on loopback, for the seconds of a game day",
    "ground/rehearsed_programs.py": "finds free ports for the servers of a game day, on loopback",
    "spark/connect_server.py": "is the engine of a cluster: the row of the Spark Connect server",
    "edge/service.py": "serves the control plane by edge/http_server.py",
    "edge/sources/upload.py": "takes uploads by edge/http_server.py",
    "edge/sources/source.py": "binds the name of a source to its logger",
}


def opens(tree: ast.Module) -> bool:
    """Whether a module calls what listens, inherits from it, or names a program that does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in LISTENING | STARTING:
                return True
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") in LISTENING for base in node.bases):
            return True
        if isinstance(node, ast.Constant) and node.value in STARTING:
            return True
    return False


def listeners() -> set[str]:
    """The modules of the package that open a listening socket or start a program that does."""
    modules = {str(each.relative_to(PACKAGE)): ast.parse(each.read_text()) for each in PACKAGE.rglob("*.py")}
    return {name for name, tree in modules.items() if opens(tree)}


def test_each_module_that_listens_has_a_row_and_each_row_a_module() -> None:
    assert {row[-1].strip("` |") for row in rows("What listens")} == listeners() - set(NO_LISTENERS)
    assert set(NO_LISTENERS) <= listeners(), "an exception that no module needs"


def test_a_module_that_would_listen_is_found() -> None:
    for source in (
        "s.bind(('', 1))",
        "class A(HTTPServer): ...",
        "run(['dagster_webserver'])",
        "start_server(f)",
    ):
        assert opens(ast.parse(source)), source
    assert not opens(ast.parse("s.connect(('', 1))"))


def test_default_addresses_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in declared_settings():
        monkeypatch.delenv(setting.variable, raising=False)
    chosen = Settings()
    told = {row[0]: row[1] for row in rows("What listens")}
    assert f"`{chosen.webserver_host}:{chosen.webserver_port}`" == told["Dagster's UI and GraphQL"]
    assert f"`{chosen.health_host}:{chosen.health_port}`" == told["`/health`, `/metrics`"]
    assert f"`{chosen.serving.host}:{chosen.serving.port}`" == told["Lookup endpoint (`sda catalog serve`)"]
    assert f"`127.0.0.1:{chosen.engine_port}`" in {told[name] for name in told if name.startswith("Spark Connect")}


def test_each_setting_that_may_hold_a_secret_is_on_the_page_and_is_not_printed() -> None:
    hidden = {each.variable for each in declared_settings() if not each.field.repr}
    listed = set(re.findall(r"`(SDA_\w+)`", " ".join(cell for row in rows("Secrets") for cell in row)))
    assert hidden <= listed
    assert {each.variable for each in declared_settings()} & listed == hidden


def test_each_listener_of_the_page_is_tried_without_and_with_its_credential() -> None:
    tried = dict.fromkeys(each.listener for each in sockets.ATTEMPTS)
    assert list(tried) == [row[0].strip("| ") for row in rows("What listens")]
