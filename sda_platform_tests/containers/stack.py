"""compose.yaml as it stands, run with images of Debian's packages, on a disk of its own that can become full."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from sda_platform.clock import MissionClock
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.lake.lake import Lake, without_session
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.platform import SETTINGS, standing_clock, work_left
from sda_platform_tests.campaign.world import Delivery, World
from sda_platform_tests.containers.engine import BASE, ROOT, build, compose_command, docker, inspected
from sda_platform_tests.support.running_platform import eventually

PROJECT = "sda-test"
PASSWORD = "p@ss/w:rd#%41?&=+ \"$x'é"
UPLOAD_TOKEN = "token-of-the-uploads-of-the-test"
UPLOAD_PORT = 9101
START_S = 900.0
"""Bound for a start of all services on a machine that is busy with other work."""
_SDA = 10001
_COLLECT = f"""
[collector]
control = "collector:9100"
token_variable = "SDA_COLLECT_TOKEN"

[sources.upload]
kind = "upload"
bind = "0.0.0.0:{UPLOAD_PORT}"
token_variable = "UPLOAD_TOKEN"
"""


class Stack:
    """The services of the Compose file, with the profiles, and what a campaign lands and judges.

    Args:
        directory: for its secrets and its override.
        data: a directory that becomes the volume of home, lake and landing zones.
    """

    def __init__(self, directory: Path, data: Path) -> None:
        self._compose, self._directory, self.home = compose_command(), directory, data
        self.world = World(seed=33)
        self.environment: dict[str, str] = {}
        secrets = directory / "secrets"
        secrets.mkdir()
        (secrets / "collect.toml").write_text(_COLLECT)
        self._platform = ("engine", "code-server", "run-workers", "daemon", "webserver", "watchdog", "catalogue")
        standing_clock(data)
        self._own(data)

    def build(self) -> None:
        """Build all images; what has not changed is kept by Docker."""
        revision = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True)
        here = Path(__file__).parent
        build("sda-platform", ROOT, "--build-arg", f"REVISION={revision.stdout.decode().strip() or '0' * 12}")
        build("sda-prometheus", ROOT / "monitoring")
        build("sda-test-postgres", here / "postgres")
        build("sda-test-nginx", here / "nginx")

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

    def sda(self, *arguments: str) -> Any:
        """What a command in the webserver's container prints as JSON."""
        done = docker("exec", self.containers()["webserver"], "sda", *arguments, "--json", check=False)
        return json.loads(done)

    def logs(self, *services: str) -> str:
        """The last lines of services."""
        return self.compose("logs", "--tail", "40", *services, check=False).stdout if services else ""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Put files into the landing zones, as a process of the platform's user."""
        self.world.deliver(deliveries, str(self.home / "landing"))
        self._own(self.home / "landing")

    def drain(self) -> None:
        """Wait until nothing is left to do."""
        left = [""]

        def is_done() -> bool:
            with self.instance as instance:
                left[0] = work_left(str(self.home / "landing"), instance, self.lake)
            return not left[0]

        assert eventually(is_done, START_S, 1.0), f"{left[0]}\n{self.logs('daemon', 'run-workers')}"

    def problems(self) -> list[str]:
        """What the oracle of the fault campaign has against tables, zones and subscriber."""
        lake, landing_root = self.lake, str(self.home / "landing")
        with self.instance as instance:
            eventually(lambda: not oracle.at_rest(instance, landing_root), START_S)
            return [
                *oracle.identity(lake, self.world.written),
                *oracle.content(lake, self.world.written),
                *oracle.log(lake),
                *oracle.files(lake),
                *oracle.deliveries(lake, self.subscriber),
                *oracle.acknowledged(lake, landing_root),
                *oracle.at_rest(instance, landing_root),
            ]

    @property
    def lake(self) -> Lake:
        return Lake(str(self.home / "lake"), MissionClock.load(self.home), without_session)

    @property
    def subscriber(self) -> PostgresSubscriber:
        return PostgresSubscriber(f"postgresql://sda@{self.address('postgres')}/subscriber?sslmode=disable")

    @property
    def instance(self) -> dg.DagsterInstance:
        """Dagster's records in the Postgres container, to be used as a context manager."""
        os.environ["SDA_DAGSTER_POSTGRES_URL"] = f"postgresql+psycopg2://sda@{self.address('postgres')}/dagster"
        return dg.DagsterInstance.from_config(str(self.home / "dagster"))

    def remove(self) -> None:
        """End it, with containers, networks and volumes."""
        self.compose("down", "--volumes", "--timeout", "5", check=False)

    def _own(self, directory: Path) -> None:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, _SDA, _SDA, follow_symlinks=False)
