"""Which process counts as hung: probes are sent to small real servers of this test."""

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from pyspark.sql.connect.proto import ExecutePlanRequest

from sda_platform.lake.errors import EngineUnavailable
from sda_platform.runtime import liveness
from sda_platform.runtime.liveness import Liveness
from sda_platform.runtime.processes import Service
from sda_platform.spark import session, statements
from sda_platform_tests.support.stand_in_engine import StandInEngine, serving

NO_TOKEN = Path("no-token")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    started = Service("sleeper", sleeper, dict(os.environ), tmp_path, tmp_path / "log")
    started.start()
    yield started
    started.signal(9)
    started.wait()


def asked(watched: Liveness, times: int) -> list[bool]:
    """Whether it counts as hung after each of so many questions."""
    verdicts = []
    for _ in range(times):
        watched.ask()
        verdicts.append(watched.is_hung)
    return verdicts


def watching(service: Service, answers: Sequence[bool | None], start_s: float = 20.0) -> Liveness:
    replies = iter(answers)
    return Liveness(service, lambda _deadline_s: next(replies), period_s=5.0, start_s=start_s)


def test_three_unanswered_questions_in_succession_mean_hung_D8(service: Service) -> None:
    watched = watching(service, [True, False, False, True, False, False, None, False])
    assert asked(watched, 8) == [False] * 7 + [True], "an answer in between, or none that can be known, changes it"
    assert watched.silent_s == 15.0


def test_before_its_first_answer_a_process_has_its_time_to_start_D8(service: Service) -> None:
    watched = watching(service, [True] + [False] * 6)
    watched.ask()
    service.signal(9)
    service.wait()
    service.start()
    assert asked(watched, 6) == [False, False, False, True, True, True]


def test_a_question_that_was_never_answered_ends_no_process_D8(service: Service) -> None:
    assert asked(watching(service, [False] * 12), 12) == [False] * 12


def test_a_process_that_was_started_again_is_judged_anew_D8(service: Service) -> None:
    watched = watching(service, [True, False, False, False, False, False, False, False])
    assert asked(watched, 4)[-1]
    service.signal(9)
    service.wait()
    assert not watched.is_hung, "what has ended does not hang"
    service.start()
    assert asked(watched, 4) == [False, False, False, True]


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port that accepts connections and never answers, as that of a stopped process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_process_that_accepts_and_never_answers_is_seen_D8(mute_port: int) -> None:
    assert liveness.engine_answers(f"sc://127.0.0.1:{mute_port}")(0.3) is False
    assert liveness.code_server_answers(f"127.0.0.1:{mute_port}")(0.3) is False
    assert liveness.webserver_answers(f"http://127.0.0.1:{mute_port}")(0.3) is False
    assert liveness.daemon_beats(f"http://127.0.0.1:{mute_port}", NO_TOKEN)(0.3) is None, (
        "the daemon's state is not known then"
    )


def test_a_port_that_another_protocol_took_is_no_answer_of_the_webserver_D8() -> None:
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    assert liveness.webserver_answers(f"http://127.0.0.1:{port}")(10.0) is False
    assert liveness.daemon_beats(f"http://127.0.0.1:{port}", NO_TOKEN)(10.0) is None
    server.stop(None).wait()


def test_a_run_does_not_wait_for_an_engine_that_never_answers_D8(
    mute_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_PROBE_TIMEOUT_S", 0.3)
    with pytest.raises(EngineUnavailable, match=rf"the Spark engine at sc://127\.0\.0\.1:{mute_port} does not answer"):
        session.attach(f"sc://127.0.0.1:{mute_port}", "alerts", lake_uri="lake")


def test_the_engine_is_asked_in_spark_connects_own_protocol_D8() -> None:
    engine = StandInEngine()
    with serving(engine) as port:
        assert liveness.engine_answers(f"sc://127.0.0.1:{port}")(10.0) is True
    received = engine.received
    expected = ExecutePlanRequest(session_id=received[0].session_id)
    expected.user_context.user_id = "sda"
    expected.plan.root.sql.query = "SELECT 1"
    assert received == [expected]
    assert statements.select_one() == expected.SerializeToString()


def test_the_code_server_is_asked_as_dagster_serves_it_D8() -> None:
    states = health.HealthServicer()
    states.set("DagsterApi", health_pb2.HealthCheckResponse.SERVING)
    server = grpc.server(futures.ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(states, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ask = liveness.code_server_answers(f"127.0.0.1:{port}")
    assert ask(10.0) is True
    states.set("DagsterApi", health_pb2.HealthCheckResponse.NOT_SERVING)
    assert ask(10.0) is False
    server.stop(None)


def test_the_daemon_works_while_its_heartbeats_change_D8() -> None:
    beats = {"daemons": [1.0, None]}

    logins: list[str] = []

    class Webserver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            logins.append(self.headers["Authorization"])
            statuses = [{"lastHeartbeatTime": beat} for beat in beats["daemons"]]
            answer = json.dumps({"data": {"instance": {"daemonHealth": {"allDaemonStatuses": statuses}}}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Webserver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ask = liveness.daemon_beats(f"http://127.0.0.1:{server.server_address[1]}", NO_TOKEN)
        found = [ask(10.0), ask(10.0)]
        beats["daemons"] = [1.0, 2.0]
        found += [ask(10.0), ask(10.0)]
        server.shutdown()
    assert found == [True, False, True, False]
