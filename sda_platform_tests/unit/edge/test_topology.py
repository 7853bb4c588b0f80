"""The audit of the topology: no edge without a declaration, a bound and a reason, and no queue or task next to it."""

import ast
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sda_platform.edge
from sda_platform.edge.channel import OverflowPolicy
from sda_platform.edge.topology import MIB, Topology, audit, declared_edges
from sda_platform.formats.registry import ZONES
from sda_platform_tests.support.collectors import collecting

PACKAGE = Path(sda_platform.edge.__file__).parent


def test_the_topology_of_a_running_collector_is_the_declared_one__DP4_F1_F2_Q2(tmp_path: Path) -> None:
    async def scenario() -> None:
        sources = {"radar": {"kind": "radar", "bind": "127.0.0.1:0"}, "isl": {"kind": "isl", "bind": "127.0.0.1:0"}}
        async with collecting(tmp_path, sources) as collector:
            edges = [channel.edge for channel in collector.topology.channels()]
        assert audit(edges, ZONES) == []
        assert edges == declared_edges(["radar", "isl"])
        assert sum(edge.capacity for edge in edges) <= 70 * MIB

    asyncio.run(scenario())


def test_an_undeclared_or_unbounded_edge_is_found__DP4_Q1() -> None:
    (edge, *_) = declared_edges(["radar"])
    found = audit(
        [replace(edge, name="radar.extra"), replace(edge, capacity=2**40), replace(edge, reason="")], ["radar"]
    )
    assert {finding.detail for finding in found} == {
        "is not declared",
        "capacity 1099511627776 is no bound",
        "gives no reason for its size and policy",
    }


def test_high_priority_blocks_and_low_priority_is_shed__DP4_I3() -> None:
    policies = {edge.name: edge.policy for edge in declared_edges(["radar", "telemetry"])}
    assert policies["radar.high"] is OverflowPolicy.BLOCK
    assert policies["radar.low"] is OverflowPolicy.SHED
    assert policies["telemetry.high"] is OverflowPolicy.DEADLINE


def test_a_pool_is_one_channel_for_every_caller() -> None:
    topology = Topology()
    assert topology.lanes("radar") == topology.lanes("radar")


# What may be called where: queues and tasks are made in these places only, each bounded or awaited there.
_MAKERS = {"create_task", "ensure_future", "Queue", "deque", "Channel", "LifoQueue", "PriorityQueue", "SimpleQueue"}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _MAKERS:
                yield name, node


def unbounded(path: Path) -> list[str]:
    """Queues without a bound and channels outside the topology."""
    found = []
    for name, call in calls(path):
        words = {keyword.arg for keyword in call.keywords}
        is_bounded = words & {"maxsize", "maxlen"} or (name in ("create_task", "ensure_future"))
        is_declared = name == "Channel" and path.name == "topology.py"
        is_inside = name == "deque" and path.name == "channel.py"
        if not (is_bounded or is_declared or is_inside):
            found.append(f"{path.name}:{call.lineno}: {name} without a bound")
    return found


def detached(path: Path) -> list[str]:
    """Tasks that no one keeps: their failure would disappear."""
    tree = ast.parse(path.read_text())
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    in_group = "TaskGroup" in path.read_text()
    return [
        f"{path.name}:{call.lineno}: a detached task"
        for call in alone
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("create_task", "ensure_future") and not in_group
    ]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_no_queue_without_bound_and_no_detached_task_in_the_code__DP4_F2_F3(path: Path) -> None:
    assert unbounded(path) + detached(path) == []


def test_the_audit_of_the_code_finds_what_it_looks_for__DP4_Q1(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("import asyncio\nq = asyncio.Queue()\nasyncio.create_task(f())\nc = Channel(edge)\n")
    assert unbounded(path) == ["wrong.py:2: Queue without a bound", "wrong.py:4: Channel without a bound"]
    assert detached(path) == ["wrong.py:3: a detached task"]
