"""Addresses of engines: host, port and parameters; a token in an address is refused and not repeated."""

import os
import shutil
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from sda_platform.lake.errors import EngineUnavailable
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.liveness import engine_answers
from sda_platform.runtime.separate import separate_service
from sda_platform.settings import Settings
from sda_platform.spark import connect_server
from sda_platform.spark.channel import TOKEN_VARIABLE, host_and_port, kept_token
from sda_platform.spark.engine import remote_address, session_url
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform.spark.session import attach
from sda_platform_tests.support.proxy import certify
from sda_platform_tests.support.stand_in_engine import StandInEngine, serving


@pytest.mark.parametrize(
    ("remote", "place"),
    [
        ("sc://host:443", ("host", 443)),
        ("sc://host:443/;use_ssl=true", ("host", 443)),
        ("sc://host", ("host", 15002)),
        ("sc://[::1]:7/", ("::1", 7)),
    ],
)
def test_an_address_has_a_host_and_a_port(remote: str, place: tuple[str, int]) -> None:
    assert host_and_port(remote) == place


@pytest.mark.parametrize("remote", ["local", "host:15002", "http://host", "sc://", ""])
def test_what_is_no_address_is_refused(remote: str) -> None:
    with pytest.raises(ValueError, match="is no address of an engine; write sc://host:port"):
        host_and_port(remote)


@pytest.mark.parametrize("remote", ["sc://host/;token=hidden", "sc://host/;use_ssl=true;token=hidden"])
def test_a_token_in_an_address_is_refused_and_not_repeated(remote: str) -> None:
    with pytest.raises(EngineUnavailable, match=f"set {TOKEN_VARIABLE}") as refusal:
        attach(remote, "alerts")
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("sc://host:1", "sc://host:1/;session_id=s;user_id=sda"),
        ("sc://host:1/", "sc://host:1/;session_id=s;user_id=sda"),
        ("sc://host:1/;use_ssl=true", "sc://host:1/;use_ssl=true;session_id=s;user_id=sda"),
        ("sc://host:1/;use_ssl=true;", "sc://host:1/;use_ssl=true;session_id=s;user_id=sda"),
    ],
)
def test_a_session_keeps_the_parameters_of_the_address(remote: str, url: str) -> None:
    assert session_url(remote, "s") == url


class Guarded(StandInEngine):
    """Refuses statements as Spark's interceptor does."""

    def _execute(self, _request: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid authentication token")


@pytest.mark.parametrize(("token", "reason"), [("guessed", "does not hold the engine's token"), ("", "is not set")])
def test_an_engine_that_refuses_the_token_is_told_with_the_variable_and_without_the_token(
    token: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    with serving(Guarded()) as port, pytest.raises(EngineUnavailable, match=f"{TOKEN_VARIABLE} {reason}") as refusal:
        attach(f"sc://127.0.0.1:{port}", "alerts")
    assert "Invalid authentication token" in str(refusal.value)
    assert "guessed" not in str(refusal.value)


def test_roots_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "/nowhere/roots.pem")
    with pytest.raises(EngineUnavailable, match=r"the certificates cannot be read: .*/nowhere/roots.pem"):
        attach("sc://127.0.0.1:1/;use_ssl=true", "alerts")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here, which makes the certificates")
def test_a_process_that_runs_on_trusts_a_certificate_that_was_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = tmp_path / "roots.pem"
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(roots))
    answers = []
    for name in ("of the old year", "of the new year"):
        directory = tmp_path / name
        directory.mkdir()
        certificate = certify(directory)
        with serving(StandInEngine(), certificate) as port:
            ask = engine_answers(f"sc://127.0.0.1:{port}/;use_ssl=true")
            if roots.exists():
                answers.append(ask(5.0))
            roots.write_bytes(certificate.read_bytes())
            answers.append(ask(5.0))
    assert answers == [True, False, True], "it is refused until the file of the roots has it"


class Asking(StandInEngine):
    """Demands a token as Spark's interceptor does, of every kind of call."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token
        self.headers: list[tuple[str, str]] = []

    def service(self, details: Any) -> Any:
        self.headers += details.invocation_metadata
        if ("authorization", f"Bearer {self._token}") in details.invocation_metadata:
            return super().service(details)
        refuse = lambda _request, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid token")  # noqa: E731
        return grpc.unary_unary_rpc_method_handler(refuse)


def test_an_address_with_a_token_file_is_let_in_and_others_are_not__S10(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    path = tmp_path / "a b=c;d" / "token"
    asking = Asking(kept_token(path))
    with serving(asking) as port:
        session = cast("Any", attach(remote_address(port, path), "alerts"))
        session.conf.set("spark.sql.x", "1")
        session.client.close()
        assert not [name for name, value in asking.headers if str(path) in value or name == "token_file"]
        assert engine_answers(remote_address(port, path))(5.0)
        assert not engine_answers(remote_address(port))(5.0)
        other = tmp_path / "other"
        kept_token(other)
        for remote, reason in ((remote_address(port), "is not set"), (remote_address(port, other), "other does not")):
            with pytest.raises(EngineUnavailable, match=reason) as refused:
                attach(remote, "alerts")
            assert kept_token(path) not in str(refused.value)


def test_a_token_is_kept_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = kept_token(path)
    assert (len(token), kept_token(path), path.stat().st_mode & 0o777) == (64, token, 0o600)
    path.chmod(0o640)
    with pytest.raises(EngineUnavailable, match="open to other users"):
        attach(remote_address(1, path), "alerts")
    path.unlink()
    with pytest.raises(EngineUnavailable, match=r"cannot be read: .*No such file"):
        attach(remote_address(1, path), "alerts")


def test_an_engine_is_not_started_without_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PlatformError, match=f"set {TOKEN_VARIABLE}, or name a token_file"):
        separate_service("engine", Settings(home=tmp_path, spark_remote="sc://127.0.0.1:15002"))
    with pytest.raises(SystemExit):
        connect_server.main(["spark://host:7077", str(tmp_path)])
    assert f"set {TOKEN_VARIABLE}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "secret", ["", "short", "with a blank and more than 32 letters", "-Dx=y\n-Dspark.authenticate=false" * 2]
)
def test_a_cluster_has_a_secret(secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "token")
    monkeypatch.setenv(connect_server.SECRET_VARIABLE, secret)
    with pytest.raises(SystemExit):
        connect_server.main(["spark://host:7077", str(tmp_path)])


def test_the_command_line_of_a_server_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    started: list[list[str]] = []
    monkeypatch.setenv(TOKEN_VARIABLE, "token-of-the-test")
    monkeypatch.setenv(connect_server.SECRET_VARIABLE, "5ecret" * 6)
    monkeypatch.setattr(os, "execve", lambda program, command, environment: started.append(command))
    monkeypatch.chdir(tmp_path)
    connect_server.main(["spark://host:7077", str(tmp_path)])
    (command,) = started
    assert not [part for part in command if "5ecret" in part or "token-of-the-test" in part]
    assert "-Dspark.authenticate=true" in command and "-Dspark.network.crypto.enabled=true" in command
    options = Path(command[1].removeprefix("@"))
    assert options.read_text() == f"-Dspark.authenticate.secret={'5ecret' * 6}\n"
    assert options.stat().st_mode & 0o777 == 0o600
