"""The Compose file: what it names exists in this repository and in the code, and Compose accepts it where it is."""

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.edge.address import Address
from sda_platform.runtime.platform_home import POSTGRES_SCHEME, POSTGRES_VARIABLE
from sda_platform.runtime.separate import SERVICES, separate_service
from sda_platform.settings import Settings, require_known_variables
from sda_platform.spark.channel import TOKEN_VARIABLE, host_and_port, read_token, token_file, with_token_file
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.containers.engine import compose_command

ROOT = Path(__file__).parents[3]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
CONTAINERS: Mapping[str, dict[str, Any]] = COMPOSE["services"]
OWN = {name: each for name, each in CONTAINERS.items() if each["image"] == "sda-platform"}
PASSWORD = "of-the-test"
OTHER_COMMANDS = {"catalogue": ["catalog", "serve"], "collector": ["collector", "run"]}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the containers, with ports on this machine."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    return Settings()


def environment() -> dict[str, str]:
    given = COMPOSE["x-platform"]["environment"]
    return {name: re.sub(r"\$\{POSTGRES_PASSWORD[^}]*\}", PASSWORD, value) for name, value in given.items()}


def test_every_service_of_the_platform_has_a_container_and_starts_by_its_own_command() -> None:
    started = {name: each["command"] for name, each in OWN.items()}
    assert {command[2] for command in started.values() if command[1] == "service"} == set(SERVICES)
    for name, (program, *command) in started.items():
        assert program == "sda"
        assert command == OTHER_COMMANDS.get(name, ["service", name])


def test_a_health_check_asks_the_service_of_its_container() -> None:
    asked = {name: each["healthcheck"]["test"] for name, each in OWN.items() if "healthcheck" in each}
    assert asked == {name: ["CMD", "sda", "service", name, "--check"] for name in SERVICES}


def test_its_variables_are_settings_and_no_password_is_part_of_an_address() -> None:
    require_known_variables(environment())
    assert environment()[POSTGRES_VARIABLE].startswith(POSTGRES_SCHEME)
    addresses = {name: value for name, value in environment().items() if "@" in value}
    assert addresses.keys() == {POSTGRES_VARIABLE, "SDA_SUBSCRIBER"}
    assert all("://sda@postgres/" in value for value in addresses.values())
    assert environment()["PGPASSWORD"] == PASSWORD


@pytest.mark.parametrize("password", [PASSWORD, "p@ss/w:rd#%41?&=+ \\'\"$é"])
def test_the_subscriber_takes_any_password_as_it_stands(password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", password)
    assert PostgresSubscriber(environment()["SDA_SUBSCRIBER"])._options["password"] == password


def test_each_address_is_a_container_that_listens_there(settings: Settings) -> None:
    assert host_and_port(settings.spark_remote)[0] == "engine"
    assert Address.parse(settings.code_server).host == "code-server"
    listening = {"webserver": settings.webserver_host, "watchdog": settings.health_host}
    assert listening == {name: name for name in listening}
    assert settings.serving.host == "catalogue"
    ports = {
        "webserver": settings.webserver_port,
        "watchdog": settings.health_port,
        "catalogue": settings.serving.port,
    }
    published = {name: each["ports"] for name, each in OWN.items() if "ports" in each}
    assert published == {name: [f"127.0.0.1:{port}:{port}"] for name, port in ports.items()}, "loopback: no login"


def test_each_command_can_be_made_from_the_settings(settings: Settings, tmp_path: Path) -> None:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    token = token_file(settings.spark_remote)
    assert token == settings.home / "engine/token", "on the volume that all share"
    elsewhere = with_token_file("sc://engine:15002", tmp_path / "token")
    settings = settings.model_copy(update={"spark_remote": elsewhere})
    made = {name: separate_service(name, settings) for name in SERVICES}
    assert made["engine"].environment[TOKEN_VARIABLE] == read_token(tmp_path / "token")
    assert "-Dspark.connect.grpc.binding.address=engine" in made["engine"].command
    code_server, webserver = " ".join(made["code-server"].command), " ".join(made["webserver"].command)
    assert "-h code-server -p 4000" in code_server
    assert "-h webserver -p 3000 -w /data/dagster/workspace.yaml" in webserver
    assert made["watchdog"].command[-1] == "watchdog:3001"
    for service in made.values():
        assert service.environment["DAGSTER_HOME"] == "/data/dagster"
        assert not [part for part in service.command if PASSWORD in part]


def test_what_it_waits_for_exists_and_can_become_true() -> None:
    for name, each in CONTAINERS.items():
        for other, wanted in each.get("depends_on", {}).items():
            can = "healthcheck" in CONTAINERS[other] if wanted["condition"] == "service_healthy" else True
            assert can, f"{name} waits for the health of {other}, which has no check"


def test_its_files_and_volumes_exist_and_its_secrets_are_kept_out_of_git() -> None:
    for each in CONTAINERS.values():
        for volume in each.get("volumes", []):
            source = volume.partition(":")[0]
            assert (ROOT / source).is_file() if source.startswith("./") else source in COMPOSE["volumes"]
    assert all(secret["file"] == f"./secrets/{name}" for name, secret in COMPOSE["secrets"].items())
    assert "secrets" in {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    assert "*" in (ROOT / ".dockerignore").read_text().splitlines(), "an image has only what is named"
    assert {each for service in CONTAINERS.values() for each in service.get("secrets", [])} == set(COMPOSE["secrets"])


def test_the_proxy_gets_every_variable_of_its_template_and_no_other() -> None:
    template = (ROOT / "deploy/nginx.conf.template").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", template)) == set(CONTAINERS["proxy"]["environment"])
    for secret in CONTAINERS["proxy"]["secrets"]:
        assert f"${{PROXY_SECRETS}}/{secret};" in template


def test_the_documented_envsubst_replaces_the_variables_of_the_proxy_and_none_of_nginx(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/run-in-containers.md").read_text()
    block = textwrap.dedent(
        "    $ export PROXY_UI=" + text.partition("    $ export PROXY_UI=")[2].partition(" && nginx -t")[0]
    )
    commands = block.removeprefix("$ export PROXY_UI=").replace("\n$ ", "\n")
    made = tmp_path / "sda.conf"
    script = f"export PROXY_UI={commands.replace('/etc/nginx/conf.d/sda.conf', str(made))}"
    template = (ROOT / "deploy/nginx.conf.template").read_text()
    given = dict(re.findall(r"(PROXY_\w+)=(\S+)", script))
    assert set(re.findall(r"\$(PROXY_\w+)", commands)) == given.keys() == set(CONTAINERS["proxy"]["environment"])
    if shutil.which("envsubst") is None:
        pytest.skip("no envsubst here (Debian, Ubuntu: apt install gettext-base)")
    subprocess.run(["sh", "-ec", script], cwd=ROOT, check=True)
    assert made.read_text() == re.sub(r"\$\{(PROXY_\w+)\}", lambda found: given[found[1]], template)


def test_the_image_has_no_entry_point_and_no_root() -> None:
    """Compose and Kubernetes give whole commands."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert not [line for line in lines if line.startswith("ENTRYPOINT")]
    assert [line for line in lines if line.startswith("USER")] == ["USER sda"]
    assert all(each.get("user") == "sda" and each["cap_drop"] == ["ALL"] for each in OWN.values())


def configured(**variables: str) -> dict[str, dict[str, Any]]:
    """The services as Compose understands them, with ``variables`` of its environment."""
    command = compose_command()
    profiles = [
        part for each in CONTAINERS.values() for name in each.get("profiles", []) for part in ("--profile", name)
    ]
    done = subprocess.run(
        [*command, "-f", str(ROOT / "compose.yaml"), *profiles, "config"],
        env={**os.environ, "POSTGRES_PASSWORD": PASSWORD, "REVISION": "0123456789ab", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    services: dict[str, dict[str, Any]] = yaml.safe_load(done.stdout)["services"]
    return services


def test_compose_accepts_it() -> None:
    assert set(configured()) == set(CONTAINERS)


def test_the_file_of_settings_that_is_shipped_sets_nothing_and_its_examples_are_settings() -> None:
    lines = (ROOT / "deploy/settings.env").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == []
    examples = dict(line.removeprefix("# ").split("=", 1) for line in lines if line.startswith("# SDA_"))
    require_known_variables(examples)
    assert not environment().keys() & examples.keys(), "what compose.yaml sets itself counts"
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines(), "it may name a password"


def test_each_container_of_the_platform_gets_the_settings_of_the_file_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.env"
    examples = (ROOT / "deploy/settings.env").read_text().replace("# SDA_", "SDA_")
    file.write_text(f"{examples}SDA_HOME=/elsewhere\n")
    given = {name: each.get("environment", {}) for name, each in configured(SETTINGS=str(file)).items()}
    assert {name for name, each in given.items() if "SDA_SOURCES" in each} == OWN.keys()
    for name in OWN:
        assert given[name]["SDA_HOME"] == "/data", "the file cannot move the volume"
        monkeypatch.setenv("SDA_SOURCES", given[name]["SDA_SOURCES"])
        assert Settings().fusion.sources == ["radar", "optical"]
