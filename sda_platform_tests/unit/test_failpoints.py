"""Fault points: they strike where, when and as often as ordered, and never otherwise."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from sda_platform_tests.support import injections
from sda_platform_tests.support.injections import Injection, armed

VISITS = """
import sys
from sda_platform import failpoints
from sda_platform_tests.support import injections
for visit in sys.argv[1:]:
    point, _, table = visit.partition(":")
    failpoints.hit(point, table)
    print(visit, flush=True)
"""


def visiting(order_file: Path, *visits: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **armed(order_file)}
    command = [sys.executable, "-c", VISITS, *visits]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_armed_point_kills_whoever_reaches_it_and_shows_so_first(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    Injection("b").arm(orders)
    done = visiting(orders, "a", "b", "c")
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["a"])
    assert injections.hits(orders) == ["b"]


def test_a_point_may_be_asked_for_one_table_or_for_all(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    Injection("sent:tracks").arm(orders)
    assert visiting(orders, "sent:alerts", "sent", "sent:tracks", "end").stdout.split() == ["sent:alerts", "sent"]
    Injection("sent").arm(orders)
    assert visiting(orders, "told:alerts", "sent:alerts").stdout.split() == ["told:alerts"]
    assert injections.hits(orders) == ["sent:tracks", "sent"]


def test_a_later_visit_can_be_ordered_and_an_order_is_carried_out_once(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    Injection("a", nth=2).arm(orders)
    assert visiting(orders, "a", "a", "a").stdout.split() == ["a"]
    assert visiting(orders, "a", "a", "a").stdout.split() == ["a", "a", "a"]
    assert injections.hits(orders) == ["a"]


def test_a_following_order_is_armed_before_the_blow(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    Injection("a", then=Injection("b:tracks", "fail", then=Injection("c"))).arm(orders)
    assert visiting(orders, "b:tracks", "a").stdout.split() == ["b:tracks"]
    assert "injected at b:tracks" in visiting(orders, "b:alerts", "a", "b:tracks").stderr
    assert visiting(orders, "a", "b:tracks", "c").stdout.split() == ["a", "b:tracks"]
    assert injections.hits(orders) == ["a", "b:tracks", "c"]


def test_a_failure_is_an_exception_that_names_the_point(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    Injection("a:tracks", "fail").arm(orders)
    assert "InjectedFault: injected at a:tracks" in visiting(orders, "a:tracks").stderr
