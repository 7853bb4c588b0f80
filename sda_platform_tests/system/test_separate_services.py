"""The platform as separate services: Dagster's records in Postgres, the engine behind TLS and a token, the UI behind a
login. Everything is real and on loopback: Postgres, nginx, Spark Connect, and a process for each service.
"""

import base64
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pg8000.native
import pytest

from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.landing.zone import LandingZone
from sda_platform.runtime import platform_home
from sda_platform.runtime.processes import free_port
from sda_platform.spark.channel import TOKEN_VARIABLE
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.support.postgres_server import PostgresServer, postgres_with_empty_database
from sda_platform_tests.support.proxy import PASSWORD, USER, Proxy, proxy
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.segments import START_NS, described, radar_segment
from sda_platform_tests.support.separate_services import SeparateServices, graphql, listening_at

pytestmark = [pytest.mark.timeout(1800), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
TOKEN = "token-of-the-test"
# A bound for a machine that is busy with other work.
TIMEOUT_S = 600.0
_RUNS = "{ runsOrError { ... on Runs { results { jobName status } } } }"


class Deployment:
    """The running services and what is around them."""

    def __init__(self, home: Path, services: SeparateServices, server: PostgresServer, front: Proxy, ui: str) -> None:
        self.home, self.services, self.server, self.front, self.ui = home, services, server, front, ui

    def land(self, name: str, records: int, first: int) -> None:
        data = radar_segment(records, first_track=first)
        LandingZone(str(self.home / "landing"), "radar").seal(name, data, described(data))

    def rows(self, table: str) -> int:
        (found,) = [each for each in self.services.sda("status")["tables"] if each["table"] == table]
        return int(found["rows"] or 0)

    def answer_of_the_ui(self, password: str | None) -> int:
        """The status with which nginx answers a person with ``password``."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.front.ui_port}/server_info")
        if password is not None:
            code = base64.b64encode(f"{USER}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {code}")
        trusting = ssl.create_default_context(cafile=str(self.front.certificate))
        try:
            with urllib.request.urlopen(request, timeout=30, context=trusting) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    work = tmp_path_factory.mktemp("separate")
    home = work / "home"
    MissionClock.starting_at(START_NS).save(home)
    with ExitStack() as stack:
        server = stack.enter_context(postgres_with_empty_database())
        ui, connect = free_port(0), free_port(0)
        front = stack.enter_context(proxy(work / "proxy", ui=ui, connect=connect))
        settings = {
            "SDA_HOME": str(home),
            "SDA_SPARK_REMOTE": front.remote,
            TOKEN_VARIABLE: TOKEN,
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(front.certificate),
            "SDA_CODE_SERVER": f"127.0.0.1:{free_port(0)}",
            "SDA_WEBSERVER_PORT": str(ui),
            "SDA_HEALTH_PORT": str(free_port(0)),
            "SDA_DRIVER_MEMORY": "1g",
            "SDA_FUSION_REFRESH": "false",
            "SDA_TASKING": "false",
            platform_home.POSTGRES_VARIABLE: server.url.replace("postgresql://", platform_home.POSTGRES_SCHEME),
        }
        services = SeparateServices(work, settings)
        stack.callback(services.end)
        verified = services.run("verification")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        services.start("engine", SDA_SPARK_REMOTE=f"sc://127.0.0.1:{connect}")
        for name in ("code-server", "run-workers", "daemon", "webserver"):
            services.start(name)
        yield Deployment(home, services, server, front, f"http://127.0.0.1:{ui}")


def test_what_lands_becomes_rows_and_the_records_are_in_postgres(deployment: Deployment) -> None:
    deployment.land("a.radar", 30, first=0)
    assert eventually(lambda: deployment.rows(OBSERVATIONS.name) == 30, TIMEOUT_S, 2.0), deployment.services.log(
        "daemon"
    )
    runs = graphql(deployment.ui, _RUNS)["runsOrError"]["results"]
    assert "observations_to_alerts" in {run["jobName"] for run in runs}
    address = deployment.server.url.partition("://")[2]
    user, _, rest = address.partition(":")
    password, _, place = rest.partition("@")
    host, _, port = place.partition("/")[0].partition(":")
    with pg8000.native.Connection(user, host=host, port=int(port), password=password, database="postgres") as records:
        ((stored,),) = records.run("SELECT count(*) FROM runs")
    assert stored == len(runs)
    assert not list((deployment.home / "dagster").rglob("*.db")), "no SQLite file"


def test_no_process_of_it_listens_beyond_loopback(deployment: Deployment) -> None:
    listening = {place for pid in deployment.services.all_processes() for place in listening_at(pid)}
    ports = {int(place.rpartition(":")[2]) for place in listening}
    assert int(deployment.ui.rpartition(":")[2]) in ports
    loopback = ("127.0.0.1:", "[::1]:", "[::ffff:127.0.0.1]:")
    assert [place for place in sorted(listening) if not place.startswith(loopback)] == []


def test_the_worker_host_is_the_platform_of_the_home_and_excludes_others(deployment: Deployment) -> None:
    state = platform_home.running_platform(deployment.home)
    assert state is not None
    assert state["addresses"]["webserver"] == deployment.ui
    again = deployment.services.run("verification")
    assert again.returncode == 1
    assert "a platform already runs in" in again.stderr
    vitals = {each["vital"]: each for each in deployment.services.sda("status")["vitals"]}
    assert vitals["daemon_beats"]["state"] == "green"


def test_the_ui_behind_the_proxy_asks_for_a_login(deployment: Deployment) -> None:
    assert deployment.answer_of_the_ui(None) == 401
    assert deployment.answer_of_the_ui("guessed") == 401
    assert deployment.answer_of_the_ui(PASSWORD) == 200
