"""compose.yaml as it stands, run with images of Debian's packages, on a disk of its own that can become full."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from sda_platform_tests.campaign.platform import SETTINGS
from sda_platform_tests.containers.engine import (
    BASE,
    ROOT,
    build,
    build_platform,
    compose_command,
    docker,
    inspected,
)
from sda_platform_tests.containers.landed import PASSWORD, START_S, UPLOAD_PORT, UPLOAD_TOKEN, LandedHome
from sda_platform_tests.support.running_platform import eventually

PROJECT = "sda-test"
_COLLECT = f"""
[collector]
control = "collector:9100"
token_variable = "SDA_COLLECT_TOKEN"

[sources.upload]
kind = "upload"
bind = "0.0.0.0:{UPLOAD_PORT}"
token_variable = "UPLOAD_TOKEN"
"""


class Stack(LandedHome):
    """The services of the Compose file, with the profiles, and what a campaign lands and judges.

    Args:
        directory: for its secrets and its override.
        data: a directory that becomes the volume of home, lake and landing zones.
    """

    def __init__(self, directory: Path, data: Path) -> None:
        super().__init__(data)
        self._compose, self._directory = compose_command(), directory
        self.environment: dict[str, str] = {}
        secrets = directory / "secrets"
        secrets.mkdir()
        (secrets / "collect.toml").write_text(_COLLECT)
        self._platform = ("engine", "code-server", "run-workers", "daemon", "webserver", "watchdog", "catalogue")

    def build(self) -> None:
        """Build all images; what has not changed is kept by Docker."""
        build_platform()
        build("sda-prometheus", ROOT / "monitoring")
        build("sda-test-nginx", Path(__file__).parent / "nginx")

    def configure(self, **settings: str) -> None:
        """Write what the test adds to compose.yaml: images, the volume, and settings of the platform."""
        self.environment.update(settings)
        ours = {
            "environment": {
                **SETTINGS,
                **self.environment,
                "UPLOAD_TOKEN": UPLOAD_TOKEN,
                "SDA_COLLECT_TOKEN": UPLOAD_TOKEN,
            }
        }
        override = {
            "services": {
                **dict.fromkeys((*self._platform, "collector"), ours),
                "postgres": {"image": "sda-test-postgres"},
                "proxy": {"image": "sda-test-nginx"},
            },
            "volumes": {"data": {"driver_opts": {"type": "none", "o": "bind", "device": str(self.home)}}},
            "secrets": {
                name: {"file": str(self._directory / "secrets" / name)}
                for name in ("collect.toml", "tls.crt", "tls.key", "users")
            },
        }
        (self._directory / "override.yaml").write_text(yaml.safe_dump(override))

    def compose(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run Compose with all profiles."""
        files = ["-f", str(ROOT / "compose.yaml"), "-f", str(self._directory / "override.yaml")]
        profiles = [part for name in ("public", "collector", "monitoring") for part in ("--profile", name)]
        environment = {**os.environ, "POSTGRES_PASSWORD": PASSWORD, "REVISION": "of-the-test", "BASE": BASE}
        command = [*self._compose, "--project-name", PROJECT, *files, *profiles, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, f"{arguments}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done

    def up(self) -> None:
        """Start what is not running, and wait until all health checks answer."""
        self.compose("up", "--detach", "--no-build")
        self.await_healthy()

    def await_healthy(self) -> None:
        """Return once every container runs and its health check, if it has one, answers."""
        left: dict[str, str] = {}

        def is_healthy() -> bool:
            left.clear()
            left.update({name: state for name, state in self.states().items() if state not in ("running", "healthy")})
            return not left

        assert eventually(is_healthy, START_S, 2.0), f"{left}\n{self.logs(*left)}"

    def states(self) -> dict[str, str]:
        """The state of each container, or of its health, by service."""
        found = {}
        for name in self.containers():
            state = inspected(self.containers()[name])["State"]
            found[name] = state["Health"]["Status"] if state["Running"] and "Health" in state else state["Status"]
        return found

    def containers(self) -> dict[str, str]:
        """The id of each container, by service."""
        label = "com.docker.compose.service"
        lines = docker(
            "ps", "--all", "--filter", f"label=com.docker.compose.project={PROJECT}", "--format",
            f'{{{{.ID}}}} {{{{.Label "{label}"}}}}',
        ).splitlines()  # fmt: skip
        return {name: container for container, name in (line.split() for line in lines)}

    def address(self, service: str) -> str:
        """The address of a container on the network of the stack."""
        networks = inspected(self.containers()[service])["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])

    def address_of_postgres(self) -> str:
        """Return the address of the service `postgres`."""
        return self.address("postgres")

    def address_of_collector(self) -> str:
        """Return the address of the service `collector`."""
        return self.address("collector")

    def sda(self, *arguments: str) -> Any:
        """What a command in the webserver's container prints as JSON."""
        done = docker("exec", self.containers()["webserver"], "sda", *arguments, "--json", check=False)
        return json.loads(done)

    def logs(self, *services: str) -> str:
        """The last lines of services."""
        return self.compose("logs", "--tail", "40", *services, check=False).stdout if services else ""

    def remove(self) -> None:
        """End it, with containers, networks and volumes."""
        self.compose("down", "--volumes", "--timeout", "5", check=False)
