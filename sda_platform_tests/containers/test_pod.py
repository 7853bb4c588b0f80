"""deploy/kubernetes.yaml runs: its pod takes files, delivers each alert once, and survives its containers and itself.

No cluster is here: Docker runs the containers as the manifest states them (`pod`).
"""

import base64
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sda_platform_tests.containers.engine import build_platform, docker_daemon, make_base
from sda_platform_tests.containers.landed import PASSWORD, status_of
from sda_platform_tests.containers.pod import Pod

pytestmark = [pytest.mark.timeout(3600)]
_OF_THE_POD_ALONE = {"engine": 15002, "code server": 4000, "control of the collector": 9100}


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    work = tmp_path_factory.mktemp("pod")
    with ExitStack() as ending, pytest.MonkeyPatch.context() as patch:
        ending.enter_context(docker_daemon(work))
        make_base(work)
        build_platform()
        patch.setenv("PGPASSWORD", PASSWORD)
        (work / "data").mkdir()
        found = Pod(work, work / "data")
        found.remove()  # of a run that was killed
        ending.callback(found.remove)
        found.start_postgres()
        found.start()
        yield found


@pytest.fixture
def sound(pod: Pod) -> Iterator[Pod]:
    """The pod, which is judged after the test."""
    with pod.sound():
        yield pod


def test_what_is_uploaded_becomes_alerts_in_postgres_over_verified_tls(sound: Pod) -> None:
    sound.take(sound.world.first_catalogue())
    sound.deliver(sound.world.next_stretch())
    sound.drain()
    assert len(sound.subscriber.receipts()) > 0


def test_the_ui_asks_for_a_user_and_what_is_the_pods_own_is_not_reached(pod: Pod) -> None:
    assert _of_the_ui(pod, None) == 401
    assert _of_the_ui(pod, "guessed") == 401
    assert _of_the_ui(pod, pod.token) == 200
    for what, port in _OF_THE_POD_ALONE.items():
        with socket.socket() as client:
            client.settimeout(5.0)
            assert client.connect_ex((pod.address(), port)) != 0, what


def test_each_container_that_dies_is_started_again(sound: Pod) -> None:
    sound.kill_each()


def test_a_pod_that_is_deleted_and_made_again_continues_with_its_volume(sound: Pod) -> None:
    before = len(sound.subscriber.receipts())
    sound.deliver([sound.world.new_element_sets()])
    sound.await_run()
    sound.stop()
    sound.start()
    sound.drain()
    assert len(sound.subscriber.receipts()) > before


def _of_the_ui(pod: Pod, token: str | None) -> int:
    """The status with which the UI answers a user with ``token``."""
    code = base64.b64encode(f"{pod.user}:{token}".encode()).decode()
    headers = {"Authorization": f"Basic {code}"} if token else {}
    return status_of(urllib.request.Request(f"http://{pod.address()}:3000/runs", headers=headers))
