"""The manifests of Kubernetes: its API takes them, and the pod has what Compose has."""

from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
import pytest
import yaml

from sda_platform.edge.address import Address
from sda_platform.runtime.platform_home import POSTGRES_VARIABLE
from sda_platform.serving.console_path import CONSOLE_PATH
from sda_platform.settings import Settings, require_known_variables
from sda_platform.spark.channel import host_and_port, token_file

ROOT = Path(__file__).parents[3]
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()))
(POD,) = [each["spec"]["template"]["spec"] for each in MANIFESTS if each["kind"] == "StatefulSet"]
(SETTINGS,) = [each["data"] for each in MANIFESTS if each["kind"] == "ConfigMap"]
IN_ORDER: list[dict[str, Any]] = [*POD["initContainers"], *POD["containers"]]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
OWN = {name: each for name, each in COMPOSE.items() if each["image"] == "sda-platform"}
LOOPBACK = "127.0.0.1"


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: each["kind"])
def test_the_api_takes_it(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_the_api_would_refuse_a_misspelt_field() -> None:
    wrong = {**MANIFESTS[0], "dta": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_it_has_the_containers_of_compose_with_their_commands_and_checks() -> None:
    assert {each["name"]: each["command"] for each in IN_ORDER} == {n: each["command"] for n, each in OWN.items()}
    for each in IN_ORDER:
        check = OWN[each["name"]].get("healthcheck", {}).get("test", ["CMD"])[1:]
        for probe in ("startupProbe", "livenessProbe"):
            assert each.get(probe, {}).get("exec", {}).get("command", []) == check, each["name"]
        assert "readinessProbe" not in each, "a pod of which a part is away still serves the rest"


def test_each_container_starts_after_those_that_it_waits_for() -> None:
    waits = {name: set(each.get("depends_on", {})) & OWN.keys() for name, each in OWN.items()}
    assert list(TopologicalSorter(waits).static_order()), "no circle"
    names = [each["name"] for each in IN_ORDER]
    first = {each["name"] for each in POD["initContainers"]}
    for name, others in waits.items():
        assert all(names.index(other) < names.index(name) for other in others), name
    # Containers that are not of the first list start at once.
    assert {name for name, others in waits.items() if others - first} <= {"watchdog"} | first
    assert all(each["restartPolicy"] == "Always" and each["startupProbe"] for each in POD["initContainers"])


def test_no_container_is_root_or_may_become_it_or_act_in_the_cluster() -> None:
    assert POD["securityContext"]["runAsNonRoot"] and POD["securityContext"]["runAsUser"] == 10001
    assert POD["automountServiceAccountToken"] is False
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert all(each["securityContext"] == rights for each in IN_ORDER)
    assert all(each["resources"]["limits"]["memory"] and each["resources"]["requests"]["cpu"] for each in IN_ORDER)


def test_its_variables_are_settings_and_no_password_is_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    require_known_variables(SETTINGS)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert host_and_port(settings.spark_remote)[0] == LOOPBACK and Address.parse(settings.code_server).host == LOOPBACK
    assert token_file(settings.spark_remote) == settings.home / "engine/token", "on the volume that all share"
    assert {str(settings.home)} == {m["mountPath"] for c in IN_ORDER for m in c["volumeMounts"] if m["name"] == "data"}
    assert all("?sslmode=verify-full&" in SETTINGS[each] for each in ("SDA_SUBSCRIBER", POSTGRES_VARIABLE))
    (password,) = {each["valueFrom"]["secretKeyRef"]["key"] for c in IN_ORDER for each in c["env"]}
    assert password == "PGPASSWORD"
    (secrets,) = {m["mountPath"] for c in IN_ORDER for m in c["volumeMounts"] if m["name"] == "secrets"}
    first_lines = (ROOT / "deploy/kubernetes.yaml").read_text().partition("apiVersion")[0]
    for value in SETTINGS.values():
        for name in [part.partition("&")[0] for part in value.split(f"{secrets}/")[1:]]:
            assert f"--from-file={name}" in first_lines


def test_what_is_reached_from_outside_are_the_ports_that_compose_publishes() -> None:
    settings = Settings()
    ports = {"ui": settings.webserver_port, "health": settings.health_port, "catalogue": settings.serving.port}
    assert {port["name"]: port["containerPort"] for c in IN_ORDER for port in c.get("ports", [])} == ports
    by_kind = {each["kind"]: each["spec"] for each in MANIFESTS if "spec" in each}
    assert {each["name"]: each["port"] for each in by_kind["Service"]["ports"]} == ports
    (rule,) = by_kind["NetworkPolicy"]["ingress"]
    assert {each["port"] for each in rule["ports"]} == set(ports)
    host = SETTINGS["SDA_UI_URL"].removeprefix("https://")
    assert [each["host"] for each in by_kind["Ingress"]["rules"]] == by_kind["Ingress"]["tls"][0]["hosts"] == [host]
    paths = by_kind["Ingress"]["rules"][0]["http"]["paths"]
    served = {each["path"]: each["backend"]["service"]["port"]["name"] for each in paths}
    assert served == {"/": "ui", CONSOLE_PATH: "catalogue"}, "the endpoint takes the path as it is"
    monitor = yaml.safe_load((ROOT / "deploy/pod-monitor.yaml").read_text())["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in ports and monitor["selector"] == by_kind["StatefulSet"]["selector"]
