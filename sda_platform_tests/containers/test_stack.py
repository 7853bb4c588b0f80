"""compose.yaml runs: what lands becomes alerts once, while containers are killed, cut off, reconfigured and replaced.

The tests share one stack and follow each other; each begins with a stack that is at rest and judges it at its end.
"""

import base64
import json
import os
import re
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform_tests.containers.engine import docker, docker_daemon, inspected, make_base, reachable_ports
from sda_platform_tests.containers.landed import PASSWORD, UPLOAD_PORT
from sda_platform_tests.containers.stack import PROJECT, Stack
from sda_platform_tests.support.access_page import rows
from sda_platform_tests.support.proxy import USER, certify
from sda_platform_tests.support.running_platform import eventually

pytestmark = [pytest.mark.timeout(3600)]
_DISK_MB = 3_000
_RUNS = "{ runsOrError { ... on Runs { results { jobName status } } } }"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services and profiles of compose.yaml, healthy, with their data on a small disk."""
    work = tmp_path_factory.mktemp("containers")
    with ExitStack() as ending, pytest.MonkeyPatch.context() as patch:
        ending.enter_context(docker_daemon(work))
        make_base(work)
        disk = _small_disk(work)
        ending.callback(subprocess.run, ["umount", str(disk)], check=False)
        patch.setenv("PGPASSWORD", PASSWORD)
        data = disk / "data"
        data.mkdir()
        found = Stack(work, data)
        certify(work / "secrets")
        hashed = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], capture_output=True, text=True, check=True)
        (work / "secrets" / "users").write_text(f"{USER}:{hashed.stdout}")
        found.build()
        found.configure()
        found.remove()  # of a run that was killed
        ending.callback(found.remove)
        found.up()
        yield found


@pytest.fixture
def sound(stack: Stack) -> Iterator[Stack]:
    """The stack, which is judged after the test."""
    with stack.sound():
        yield stack


def _small_disk(work: Path) -> Path:
    image, disk = work / "disk.img", work / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(_DISK_MB * 2**20)
    for command in (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(disk)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no disk for the test: {done.stderr.strip()}")
    return disk


def test_what_is_uploaded_through_the_socket_becomes_alerts_in_postgres(sound: Stack) -> None:
    uploads = [sound.world.first_catalogue(), sound.world.new_messages()]
    for each in uploads:
        sound.take(each)
    sound.deliver(sound.world.next_stretch())
    sound.drain()
    assert len(sound.subscriber.receipts()) > 0
    (deliveries,) = [each for each in sound.sda("status")["tables"] if each["table"] == ALERT_DELIVERIES.name]
    assert deliveries["rows"] == len(sound.subscriber.receipts())


def test_the_ui_answers_over_tls_to_a_login_and_to_no_other(stack: Stack) -> None:
    assert _of_the_proxy(stack, None)[0] == 401
    assert _of_the_proxy(stack, "guessed")[0] == 401
    status, answer = _of_the_proxy(stack, PASSWORD)
    assert status == 200
    assert {run["status"] for run in answer["data"]["runsOrError"]["results"]} == {"SUCCESS"}


def test_alerts_are_read_over_tls_with_a_login_as_they_were_delivered(stack: Stack) -> None:
    assert _of_the_proxy(stack, None, "/console/alerts")[0] == 401
    status, answer = _of_the_proxy(stack, PASSWORD, "/console/alerts")
    delivered = {each.alert_id: json.loads(each.body) for each in stack.subscriber.held()}
    assert status == 200
    assert {each["event_id"] for each in answer} == {
        name for name, alert in delivered.items() if alert["status"] != "closed"
    }


def test_no_container_is_root_or_may_become_it(stack: Stack) -> None:
    for name, container in stack.containers().items():
        if inspected(container)["Config"]["Image"] == "sda-platform":
            assert docker("exec", container, "id", "-u").strip() == "10001", name
            status = docker("exec", container, "cat", "/proc/1/status")
            assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status, name


def test_no_container_listens_where_the_page_does_not_say(stack: Stack) -> None:
    stated = {name: {int(port) for port in re.findall(r"\d+", ports)} for name, ports, *_ in rows("In Compose")}
    stated["collector"].add(UPLOAD_PORT)
    found = {name: reachable_ports(inspected(each)["State"]["Pid"]) for name, each in stack.containers().items()}
    assert {name: ports for name, ports in found.items() if ports} == stated


def test_manifests_name_the_revision_of_the_image(stack: Stack) -> None:
    labels = json.loads(docker("inspect", "sda-platform"))[0]["Config"]["Labels"]
    (commit,) = stack.lake.log(ALERT_DELIVERIES).commits(1)
    assert f"+{labels['org.opencontainers.image.revision']} " in commit.manifest.code_version


def test_prometheus_scrapes_watchdog_and_catalogue(stack: Stack) -> None:
    found: dict[str, str] = {}

    def is_scraped() -> bool:
        with urllib.request.urlopen("http://127.0.0.1:9090/api/v1/query?query=up", timeout=10) as answer:
            for each in json.load(answer)["data"]["result"]:
                found[each["metric"]["job"]] = each["value"][1]
        return found == {"sda-platform": "1", "sda-catalogue": "1"}

    assert eventually(is_scraped, 120.0, 1.0), (found, stack.logs("prometheus"))


def test_a_second_up_leaves_all_as_it_is(sound: Stack) -> None:
    before = {name: inspected(each)["State"]["StartedAt"] for name, each in sound.containers().items()}
    sound.up()
    assert {name: inspected(each)["State"]["StartedAt"] for name, each in sound.containers().items()} == before


def test_a_new_setting_reaches_the_running_stack(sound: Stack) -> None:
    sound.configure(SDA_ALERT_YELLOW_PC="1e-8")
    sound.deliver([sound.world.new_element_sets()])
    sound.up()
    sound.drain()
    container = sound.containers()["run-workers"]
    assert docker("exec", container, "printenv", "SDA_ALERT_YELLOW_PC").strip() == "1e-8"


def test_each_container_that_dies_is_started_again(sound: Stack) -> None:
    sound.kill_each()


def test_after_a_power_loss_the_lake_is_verified_before_the_first_run(sound: Stack) -> None:
    sound.deliver(sound.world.next_stretch())
    sound.await_run()
    containers = sound.containers()
    docker("kill", *containers.values())
    lost = inspected(containers["run-workers"])["State"]["FinishedAt"]
    # As dockerd does after a power loss: all at once, in any order.
    docker("start", *containers.values())
    sound.await_healthy()
    assert "tables are sound" in docker("logs", "--since", lost, containers["run-workers"])


def test_a_cut_network_holds_up_and_loses_nothing(sound: Stack) -> None:
    network, container = f"{PROJECT}_default", sound.containers()["postgres"]
    sound.deliver([sound.world.new_element_sets()])
    sound.await_run()
    docker("network", "disconnect", network, container)
    sound.deliver(sound.world.next_stretch())
    sound.take(sound.world.new_messages())
    docker("network", "connect", "--alias", "postgres", network, container)


def test_a_full_disk_stops_runs_and_loses_nothing(sound: Stack) -> None:
    filler = sound.home.parent / "filler"
    free = shutil.disk_usage(filler.parent).free
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - 2**20)
    deliveries = [sound.world.new_element_sets()]
    try:
        assert eventually(lambda: "disk_has_space" in _red_vitals(sound), 300.0, 2.0)
        assert sound.upload(deliveries[0]) == 503
    finally:
        filler.unlink()
    sound.take(deliveries[0])


def test_down_and_up_again_continue_with_the_same_data(sound: Stack) -> None:
    before = len(sound.subscriber.receipts())
    sound.compose("down", "--timeout", "60")
    sound.up()
    assert len(sound.subscriber.receipts()) == before
    sound.deliver([sound.world.new_element_sets()])
    sound.drain()
    assert len(sound.subscriber.receipts()) > before


def _red_vitals(stack: Stack) -> set[str]:
    return {each["vital"] for each in stack.sda("status")["vitals"] if each["state"] == "red"}


def _of_the_proxy(stack: Stack, password: str | None, path: str = "/graphql") -> tuple[int, Any]:
    """Status and answer of nginx to a person with ``password``: a query of the runs, or what is at ``path``."""
    headers = {"Content-Type": "application/json", "X-Requested-With": "test"}
    if password is not None:
        code = base64.b64encode(f"{USER}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {code}"
    query = json.dumps({"query": _RUNS}).encode() if path == "/graphql" else None
    request = urllib.request.Request(f"https://localhost{path}", query, headers)
    trusting = ssl.create_default_context(cafile=str(stack._directory / "secrets/tls.crt"))
    try:
        with urllib.request.urlopen(request, timeout=60, context=trusting) as answer:
            return int(answer.status), json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, None
