"""The pod of deploy/kubernetes.yaml, run by Docker as a kubelet would: one network, one volume, one after the other."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from sda_platform.runtime.ui_users import new_user
from sda_platform_tests.campaign.platform import SETTINGS
from sda_platform_tests.containers.engine import ROOT, docker, inspected
from sda_platform_tests.containers.landed import PASSWORD, START_S, UPLOAD_PORT, UPLOAD_TOKEN, LandedHome
from sda_platform_tests.support.certificates import make_certificates
from sda_platform_tests.support.running_platform import eventually

NETWORK: Final = "sda-test-pod"
_POSTGRES_HOST: Final = "postgres.example.org"
_GROUP: Final = 10001
_COLLECT = f"""
[sources.upload]
kind = "upload"
bind = "0.0.0.0:{UPLOAD_PORT}"
token_variable = "UPLOAD_TOKEN"
"""
_MANIFESTS: Final = list(yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()))
(_SPEC,) = [each["spec"]["template"]["spec"] for each in _MANIFESTS if each["kind"] == "StatefulSet"]
_CONTAINERS: Final[Mapping[str, Mapping[str, Any]]] = {
    each["name"]: each for each in (*_SPEC["initContainers"], *_SPEC["containers"])
}
"""Of the manifest, by name, in the order of their start."""
(_SETTINGS,) = [each["data"] for each in _MANIFESTS if each["kind"] == "ConfigMap"]


class Pod(LandedHome):
    """The pod, and a Postgres server outside of it that has a certificate.

    Args:
        directory: for its secrets.
        data: a directory that becomes its volume.
    """

    def __init__(self, directory: Path, data: Path) -> None:
        super().__init__(data)
        self._directory = directory
        self.user, (self.token, section) = "ann", new_user("ann", "operator")
        make_certificates(directory, _POSTGRES_HOST)
        self._secret("users.toml", section.encode())
        self._secret("collect.toml", _COLLECT.encode())
        self._secret("postgres-ca.crt", (directory / "right.crt").read_bytes())
        (directory / "secret").chmod(0o755)

    def _secret(self, name: str, content: bytes) -> None:
        """Write a file as Kubernetes mounts it: of root, for the group of the pod."""
        path = self._directory / "secret" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        shutil.chown(path, 0, _GROUP)
        path.chmod(_SPEC["volumes"][0]["secret"]["defaultMode"] | 0o040)

    def start_postgres(self) -> None:
        """Start the server, with both databases."""
        docker("network", "create", NETWORK)
        tls = self._directory / "tls"
        tls.mkdir()
        for name in ("right.crt", "right.key"):
            shutil.copy(self._directory / name, tls / name)
            shutil.chown(tls / name, 0, 0)
        environment = {"POSTGRES_USER": "sda", "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "dagster"}
        initial = ROOT / "deploy/subscriber.sql"
        docker(
            "run", "--detach", "--name", f"{NETWORK}-postgres", "--network", NETWORK,
            "--network-alias", _POSTGRES_HOST, *_variables(environment),
            "--volume", f"{initial}:/docker-entrypoint-initdb.d/subscriber.sql:ro", "--volume", f"{tls}:/tls:ro",
            "sda-test-postgres",
        )  # fmt: skip
        ready = [
            "exec",
            f"{NETWORK}-postgres",
            "psql",
            "-U",
            "sda",
            "-d",
            "subscriber",
            "-c",
            "ALTER SYSTEM SET ssl = on",
        ]
        assert eventually(lambda: "ALTER" in docker(*ready, check=False), START_S, 1.0)
        # The key must be the server's own.
        docker("exec", "--user", "root", f"{NETWORK}-postgres", "sh", "-c",
               "install -o postgres -m 600 /tls/right.key $PGDATA/server.key"
               " && install -o postgres /tls/right.crt $PGDATA/server.crt")  # fmt: skip
        docker("exec", f"{NETWORK}-postgres", "psql", "-U", "sda", "-d", "subscriber", "-c", "SELECT pg_reload_conf()")

    def start(self) -> None:
        """Start the pod; each container begins once those of the first list before it have answered."""
        # Its first process collects the children of others, as in a pod that shares its processes.
        docker(
            "run", "--detach", "--init", "--name", NETWORK, "--network", NETWORK, "sda-platform", "sleep", "infinity"
        )
        for container in _SPEC["initContainers"]:
            self._run(container)
            self._await(container)
        for container in _SPEC["containers"]:
            self._run(container)
        self.await_healthy()

    def await_healthy(self) -> None:
        """Return once the startup probe of every container answers."""
        for container in _CONTAINERS.values():
            self._await(container)

    def containers(self) -> Mapping[str, str]:
        """The name of each container, by that in the manifest, in the order of their start."""
        return {name: _name_of(name) for name in _CONTAINERS}

    def _run(self, container: Mapping[str, Any]) -> None:
        environment = {**_SETTINGS, **SETTINGS, "PGPASSWORD": PASSWORD, "UPLOAD_TOKEN": UPLOAD_TOKEN}
        places = {"data": self.home, "secrets": self._directory / "secret"}
        mounts = [
            f"{places[m['name']]}:{m['mountPath']}{':ro' * m.get('readOnly', False)}" for m in container["volumeMounts"]
        ]
        security = _SPEC["securityContext"]
        docker(
            "run", "--detach", "--name", _name_of(container["name"]), "--restart", "always",
            "--network", f"container:{NETWORK}", "--pid", f"container:{NETWORK}",
            "--user", f"{security['runAsUser']}:{security['runAsGroup']}", "--group-add", str(security["fsGroup"]),
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
            "--memory", container["resources"]["limits"]["memory"].removesuffix("i").lower(),
            *_variables(environment), *(part for mount in mounts for part in ("--volume", mount)),
            "sda-platform", *container["command"],
        )  # fmt: skip

    def _await(self, container: Mapping[str, Any]) -> None:
        probe = container.get("startupProbe")
        if probe is None:
            return
        name, within_s = _name_of(container["name"]), probe["periodSeconds"] * probe["failureThreshold"]
        command = ["timeout", str(probe["timeoutSeconds"]), *probe["exec"]["command"], "&&", "echo", "started"]
        answers = ["exec", name, "sh", "-c", " ".join(command)]
        assert eventually(lambda: "started" in docker(*answers, check=False), within_s, probe["periodSeconds"]), (
            self.logs(container["name"])
        )

    def address(self) -> str:
        """The pod's address on the network of the cluster."""
        return str(inspected(NETWORK)["NetworkSettings"]["Networks"][NETWORK]["IPAddress"])

    def address_of_collector(self) -> str:
        """Return the pod's address, which all its containers share."""
        return self.address()

    def address_of_postgres(self) -> str:
        """Return the address of the server outside of the pod."""
        return str(inspected(f"{NETWORK}-postgres")["NetworkSettings"]["Networks"][NETWORK]["IPAddress"])

    def logs(self, *services: str) -> str:
        """The last lines of containers."""
        return "\n".join(docker("logs", "--tail", "40", _name_of(each), check=False) for each in services)

    def stop(self) -> None:
        """End the pod as Kubernetes does: the hooks, then the signal of the image, then force."""
        grace = str(_SPEC["terminationGracePeriodSeconds"])
        for name, container in reversed(list(_CONTAINERS.items())):
            hook = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
            docker("update", "--restart", "no", _name_of(name), check=False)
            if hook:
                docker("exec", _name_of(name), *hook, check=False)
            docker("stop", "--time", grace, _name_of(name), check=False)
        docker("rm", "--force", *self.containers().values(), NETWORK, check=False)

    def remove(self) -> None:
        """Remove it, the server and the network."""
        docker("rm", "--force", *self.containers().values(), NETWORK, f"{NETWORK}-postgres", check=False)
        docker("network", "rm", NETWORK, check=False)


def _name_of(container: str) -> str:
    """Return the name that a container of the manifest has here."""
    return f"{NETWORK}-{container}"


def _variables(values: Mapping[str, str]) -> list[str]:
    return [part for name, value in values.items() for part in ("--env", f"{name}={value}")]
