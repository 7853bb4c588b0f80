"""The platform as separate services: Dagster's records in Postgres, the engine behind TLS and a token, the UI behind a
login. Everything is real and on loopback: Postgres, nginx, Spark Connect, and a process for each service. Each service
is killed while a run is at a certain step.
"""

import base64
import os
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path

import dagster as dg
import pg8000.native
import pytest

from sda_platform.clock import MissionClock
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.runtime import platform_home
from sda_platform.runtime.processes import free_port
from sda_platform.spark.channel import TOKEN_VARIABLE
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.platform import SETTINGS, standing_clock, work_left
from sda_platform_tests.campaign.world import Delivery, World
from sda_platform_tests.support.injections import Injection, armed, hits
from sda_platform_tests.support.listening import listeners_of
from sda_platform_tests.support.postgres_replicas import MovingPostgres, moving_postgres
from sda_platform_tests.support.postgres_server import PASSWORD as DATABASE_PASSWORD
from sda_platform_tests.support.postgres_server import PostgresServer, postgres_with_empty_database
from sda_platform_tests.support.proxy import PASSWORD, USER, Proxy, proxy
from sda_platform_tests.support.running_platform import RunningPlatform, eventually
from sda_platform_tests.support.separate_services import SeparateServices, graphql

pytestmark = [pytest.mark.timeout(1800), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
TOKEN = "token-of-the-test"
# A bound for a machine that is busy with other work.
TIMEOUT_S = 600.0
ORDERS = "orders"
BY_READINGS = {
    "code-server": "commit.planned:raw_records",
    "daemon": "commit.sent:observations",
    "webserver": "commit.landed:fused_tracks",
}
BY_ELEMENTS = {
    "watchdog": "lake.planned:conjunction_assessments",
    "engine": "commit.planned:conjunction_alerts",
    "run-workers": "delivery.committed",
}
"""Services, and the step at which each is killed: of one run, or of the run that repeats it."""
IS_LONG = "SERVICES" in os.environ
LONG = pytest.mark.skipif(not IS_LONG, reason="takes as long as the rest; see `make soak SERVICES=1`")
_RUNS = "{ runsOrError { ... on Runs { results { jobName status } } } }"


class Deployment:
    """The running services and what is around them."""

    def __init__(
        self,
        home: Path,
        services: SeparateServices,
        server: PostgresServer | MovingPostgres,
        front: Proxy,
        ui: str,
        engine: str,
    ) -> None:
        self.home, self.services, self.server, self.front = home, services, server, front
        self.ui, self.engine = ui, engine
        self.world = World(seed=21)
        self.subscriber = PostgresSubscriber(server.url)

    @property
    def landing_root(self) -> str:
        return str(self.home / "landing")

    @property
    def lake(self) -> Lake:
        return Lake(str(self.home / "lake"), MissionClock.load(self.home), without_session)

    @property
    def instance(self) -> dg.DagsterInstance:
        """A fresh view of Dagster's records, to be used as a context manager."""
        return dg.DagsterInstance.from_config(str(self.home / "dagster"))

    def land(self, deliveries: Sequence[Delivery]) -> None:
        self.world.deliver(deliveries, self.landing_root)

    def revived(self) -> bool:
        """Start again what has ended, as a process manager does; True."""
        self.services.revive(engine={"SDA_SPARK_REMOTE": self.engine})
        return True

    def drain(self) -> None:
        """Wait until nothing is left to do."""
        with self.instance as instance:
            left = [""]

            def is_done() -> bool:
                self.revived()
                left[0] = work_left(self.landing_root, instance, self.lake)
                return not left[0]

            assert eventually(is_done, TIMEOUT_S, 0.5), f"{left[0]}\n{self.services.log('daemon')}"

    def problems(self) -> list[str]:
        """What the oracle of the fault campaign has against tables, zones and subscriber."""
        with self.instance as instance:
            rest = oracle.come_to_rest(instance, self.landing_root, TIMEOUT_S)
        found = oracle.stored(self.lake, self.landing_root, self.subscriber, self.world.written)
        return oracle.lines({**found, "O8": rest})

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


@contextmanager
def database() -> Iterator[PostgresServer | MovingPostgres]:
    """For Dagster's records and as the subscriber; with a standby for the long tests."""
    if IS_LONG:
        with moving_postgres() as replicated:
            yield replicated
    else:
        with postgres_with_empty_database() as single:
            yield single


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    work = tmp_path_factory.mktemp("separate")
    home = work / "home"
    home.mkdir()
    standing_clock(home)
    with ExitStack() as stack:
        server = stack.enter_context(database())
        ui, connect = free_port(0), free_port(0)
        front = stack.enter_context(proxy(work / "proxy", ui=ui, connect=connect))
        records = server.url.replace("postgresql://", platform_home.POSTGRES_SCHEME)
        settings = {
            **SETTINGS,
            **armed(work / ORDERS),
            "SDA_ORPHAN_GRACE_S": "15",
            "SDA_HOME": str(home),
            "SDA_SPARK_REMOTE": front.remote,
            TOKEN_VARIABLE: TOKEN,
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(front.certificate),
            "SDA_CODE_SERVER": f"127.0.0.1:{free_port(0)}",
            "SDA_WEBSERVER_PORT": str(ui),
            "SDA_HEALTH_PORT": str(free_port(0)),
            "SDA_DRIVER_MEMORY": "1g",
            "SDA_SUBSCRIBER": server.url,
            platform_home.POSTGRES_VARIABLE: records,
        }
        services = SeparateServices(work, settings)
        stack.callback(services.end)
        stack.enter_context(pytest.MonkeyPatch.context()).setenv(platform_home.POSTGRES_VARIABLE, records)
        directly = f"sc://127.0.0.1:{connect}"
        services.begin("engine", SDA_SPARK_REMOTE=directly)
        services.begin("code-server", "webserver")
        services.begin("run-workers", "daemon", "watchdog")
        services.await_all("engine", SDA_SPARK_REMOTE=directly)
        services.await_all("code-server", "run-workers", "daemon", "webserver", "watchdog")
        yield Deployment(home, services, server, front, f"http://127.0.0.1:{ui}", directly)


@pytest.fixture(scope="module")
def fed(deployment: Deployment) -> Deployment:
    """Element sets, ephemerides, messages and observations have landed, and their alerts are delivered."""
    world = deployment.world
    deployment.land([world.first_catalogue(), world.new_ephemerides(), world.new_messages()])
    deployment.land(world.next_stretch())
    deployment.drain()
    return deployment


@LONG
def test_what_lands_becomes_alerts_once_and_the_records_are_in_postgres(fed: Deployment) -> None:
    assert fed.problems() == []
    assert fed.rows(OBSERVATIONS.name) > 0
    assert fed.rows(ALERT_DELIVERIES.name) == len(fed.subscriber.receipts()) > 0
    runs = graphql(fed.ui, _RUNS)["runsOrError"]["results"]
    assert "observations_to_alerts" in {run["jobName"] for run in runs}
    address = fed.server.url.partition("://")[2]
    user, _, rest = address.partition(":")
    password, _, place = rest.partition("@")
    host, _, port = place.partition("/")[0].partition(":")
    with pg8000.native.Connection(user, host=host, port=int(port), password=password, database="postgres") as records:
        ((stored,),) = records.run("SELECT count(*) FROM runs")
    assert stored >= len(runs) > 0
    assert not list((fed.home / "dagster").rglob("*.db")), "no SQLite file"


@LONG
@pytest.mark.parametrize("struck", [BY_READINGS, BY_ELEMENTS], ids=lambda each: "+".join(each))
def test_the_death_of_each_service_at_a_step_of_a_run_loses_and_doubles_nothing(
    fed: Deployment, struck: dict[str, str]
) -> None:
    orders, order = fed.home.with_name(ORDERS), None
    for service, point in reversed(struck.items()):
        order = Injection(point, "kill-other", pid=fed.services.processes[service].pid, then=order)
    assert order is not None
    met = [*hits(orders), *struck.values()]
    order.arm(orders)
    fed.land(fed.world.next_stretch() if struck is BY_READINGS else [fed.world.new_element_sets()])
    assert eventually(lambda: fed.revived() and hits(orders) == met, TIMEOUT_S), hits(orders)
    fed.drain()
    assert fed.problems() == []
    assert [name for name, each in fed.services.processes.items() if each.poll() is not None] == []


@LONG
def test_a_restart_of_postgres_during_a_run_loses_and_doubles_nothing(fed: Deployment) -> None:
    """It has Dagster's records and the alerts. A process manager starts a service again that ends meanwhile."""
    server = replicated(fed)
    with fed.instance as instance:
        earlier = {run.run_id for run in instance.get_runs()}
        fed.land(fed.world.next_stretch())
        assert eventually(lambda: bool(begun(instance) - earlier), TIMEOUT_S), fed.services.log("daemon")
    server.stop()
    fed.land([fed.world.new_element_sets()])
    server.start()
    fed.drain()
    assert fed.problems() == []


@LONG
def test_a_change_of_the_leader_of_postgres_in_a_delivery_loses_and_doubles_nothing(fed: Deployment) -> None:
    """The worker that delivers is stopped with its rows written and not committed; Dagster's records move as well."""
    orders, server = fed.home.with_name(ORDERS), replicated(fed)
    met = [*hits(orders), "delivery.written"]
    Injection("delivery.written", "stop").arm(orders)
    fed.land([fed.world.new_element_sets()])
    assert eventually(lambda: fed.revived() and hits(orders) == met, TIMEOUT_S), hits(orders)
    server.lose_leader()
    server.promote()
    for pid in fed.services.all_processes():
        os.kill(pid, signal.SIGCONT)
    fed.drain()
    assert fed.problems() == []


def replicated(deployment: Deployment) -> MovingPostgres:
    """The database of the long tests, which has a standby."""
    assert isinstance(deployment.server, MovingPostgres)
    return deployment.server


def begun(instance: dg.DagsterInstance) -> set[str]:
    """The runs that are under way."""
    return {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))}


@pytest.mark.parametrize(("token", "reason"), [("guessed", "does not hold the engine's token"), ("", "is not set")])
def test_a_wrong_or_missing_token_is_refused_with_its_reason(deployment: Deployment, token: str, reason: str) -> None:
    answer = deployment.services.ask("lake", "sql", "SELECT 1", **{TOKEN_VARIABLE: token})
    assert answer.returncode == 1
    assert f"{TOKEN_VARIABLE} {reason}" in answer.stderr
    assert answer.stderr.count("\n") == 1, "one line, no traceback"
    assert deployment.front.remote in answer.stderr
    assert TOKEN not in answer.stderr and "guessed" not in answer.stderr


def test_no_secret_is_in_a_command_line_or_a_file_of_the_platform(deployment: Deployment) -> None:
    secrets = (TOKEN.encode(), f":{DATABASE_PASSWORD}@".encode())
    lines = [Path(f"/proc/{pid}/cmdline") for pid in deployment.services.all_processes()]
    files = [path for path in deployment.home.parent.rglob("*") if path.is_file()]
    assert len(lines) > 5 and len(files) > 5
    assert [path for path in (*lines, *files) if any(secret in content(path) for secret in secrets)] == []


def content(path: Path) -> bytes:
    """The bytes of a file; none of one that is gone meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_no_process_of_it_listens_beyond_loopback(deployment: Deployment) -> None:
    listening = {each for pid in deployment.services.all_processes() for each in listeners_of(pid)}
    assert int(deployment.ui.rpartition(":")[2]) in {port for _, port in listening}
    assert {host for host, _ in listening} <= set(map(ip_address, ("127.0.0.1", "::1", "::ffff:127.0.0.1")))


def test_the_worker_host_is_the_platform_of_the_home_and_excludes_others(deployment: Deployment) -> None:
    state = platform_home.running_platform(deployment.home)
    assert state is not None
    assert state["addresses"]["webserver"] == deployment.ui
    written = deployment.services.log("run-workers", None)
    assert "tables are sound" in written, "verified before they serve"
    assert "the engine is warm" in written, "the first run waits for no import"
    again = deployment.services.ask("service", "run-workers")
    assert again.returncode == 1
    assert "a platform already runs in" in again.stderr
    vitals = {each["vital"]: each for each in deployment.services.sda("status")["vitals"]}
    assert vitals["daemon_beats"]["state"] == "green"


def test_the_ui_behind_the_proxy_asks_for_a_login(deployment: Deployment) -> None:
    assert deployment.answer_of_the_ui(None) == 401
    assert deployment.answer_of_the_ui("guessed") == 401
    assert deployment.answer_of_the_ui(PASSWORD) == 200


@LONG
def test_sda_up_continues_what_separate_services_began_on_the_same_engine_and_records(fed: Deployment) -> None:
    """The last test, because it ends them: one process with TLS and token to the engine, and Postgres for Dagster."""
    for name in ("webserver", "daemon", "run-workers", "code-server", "watchdog"):
        fed.services.kill(name)
    with fed.instance as instance:
        earlier = {run.run_id for run in instance.get_runs()}
    changed = {name: value for name, value in fed.services.environment.items() if os.environ.get(name) != value}
    running = RunningPlatform(fed.home, environment={**changed, "SDA_CODE_SERVER": "", "SDA_WEBSERVER_PORT": "0"})
    try:
        fed.land([*fed.world.next_stretch(), fed.world.new_element_sets()])
        fed.drain()
        assert fed.problems() == []
        assert earlier < {run.run_id for run in running.runs()}
        assert not list((fed.home / "dagster").rglob("*.db")), "no SQLite file"
        assert running.interrupt(within_s=60) == 0
    finally:
        running.kill()
