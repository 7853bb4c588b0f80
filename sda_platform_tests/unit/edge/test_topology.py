"""The topology: no edge without a declaration, a bound and a reason, and no queue or task next to it."""

import ast
import asyncio
from pathlib import Path

import pytest

import sda_platform.edge
from sda_platform.edge.channel import OverflowPolicy
from sda_platform.edge.topology import MIB, Topology, declared_edges
from sda_platform.formats.registry import ZONES
from sda_platform_tests.support.collectors import collecting

PACKAGE = Path(sda_platform.edge.__file__).parent


def test_the_topology_of_a_running_collector_is_the_declared_one__DP4_F1_F2_Q2(tmp_path: Path) -> None:
    async def scenario() -> None:
        sources = {"radar": {"kind": "radar", "bind": "127.0.0.1:0"}, "isl": {"kind": "isl", "bind": "127.0.0.1:0"}}
        async with collecting(tmp_path, sources) as collector:
            edges = [channel.edge for channel in collector.topology.channels()]
        assert edges == declared_edges(["radar", "isl"])
        assert sum(edge.capacity for edge in edges) <= 70 * MIB

    asyncio.run(scenario())


def test_every_edge_has_a_bound_and_a_reason__DP4_Q1() -> None:
    edges = declared_edges(ZONES)
    assert [edge for edge in edges if not 0 < edge.capacity <= 64 * MIB or not edge.reason] == []
    assert len({edge.name for edge in edges}) == len(edges)


def test_high_priority_blocks_and_low_priority_is_shed__DP4_I3() -> None:
    policies = {edge.name: edge.policy for edge in declared_edges(["radar", "telemetry"])}
    assert policies["radar.high"] is OverflowPolicy.BLOCK
    assert policies["radar.low"] is OverflowPolicy.SHED
    assert policies["telemetry.high"] is OverflowPolicy.DEADLINE


def test_a_pool_is_one_channel_for_every_caller() -> None:
    topology = Topology()
    assert topology.lanes("radar") == topology.lanes("radar")


# What may be called where: queues and tasks are made in these places only, each bounded or awaited there.
_QUEUES = {"Queue": "maxsize", "LifoQueue": "maxsize", "PriorityQueue": "maxsize", "deque": "maxlen"}
_MAKERS = {*_QUEUES, "SimpleQueue", "Channel"}
_TASKS = {"create_task", "ensure_future"}


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_bounded(name: str, call: ast.Call) -> bool:
    """Whether the call gives a bound: an expression that is no literal 0, negative number or None."""
    word = _QUEUES.get(name)
    found = [keyword.value for keyword in call.keywords if keyword.arg == word]
    found += call.args[1:2] if name == "deque" else call.args[:1]
    if word is None or not found:
        return False
    try:
        bound = ast.literal_eval(found[0])
    except ValueError:
        return True
    return isinstance(bound, int) and not isinstance(bound, bool) and bound > 0


def unbounded(path: Path) -> list[str]:
    """Queues without a bound and channels outside the topology."""
    found = []
    for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
        name = _name(call)
        is_declared = name == "Channel" and path.name == "topology.py"
        is_inside = name == "deque" and path.name == "channel.py"
        if name in _MAKERS and not (_is_bounded(name, call) or is_declared or is_inside):
            found.append(f"{path.name}:{call.lineno}: {name} without a bound")
    return found


def detached(path: Path) -> list[str]:
    """Tasks that no one keeps: their failure would disappear. A task group keeps its own."""
    tree = ast.parse(path.read_text())
    groups = {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.context_expr, ast.Call)
        and _name(item.context_expr) == "TaskGroup"
        and isinstance(item.optional_vars, ast.Name)
    }
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return [
        f"{path.name}:{call.lineno}: a detached task"
        for call in alone
        if _name(call) in _TASKS
        and not (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id in groups
        )
    ]


ASYNCHRONOUS = [
    path
    for path in sorted(PACKAGE.parent.rglob("*.py"))
    if path.is_relative_to(PACKAGE) or "asyncio" in path.read_text()
]


@pytest.mark.parametrize("path", ASYNCHRONOUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_queue_without_bound_and_no_detached_task_in_the_code__DP4_F2_F3(path: Path) -> None:
    assert unbounded(path) + detached(path) == []


def test_the_audit_of_the_code_finds_what_it_looks_for__DP4_Q1(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    wrong = [
        "q = asyncio.Queue()",
        "q = asyncio.Queue(0)",
        "q = asyncio.Queue(maxsize=0)",
        "q = asyncio.Queue(maxsize=-1)",
        "q = asyncio.Queue(maxsize=None)",
        "q = deque(maxlen=None)",
        "q = deque([], None)",
        "q = deque(items)",
        "q = SimpleQueue()",
        "c = Channel(edge)",
    ]
    path.write_text("\n".join(wrong))
    assert [text.split(":")[1] for text in unbounded(path)] == [str(line + 1) for line in range(len(wrong))]
    path.write_text(
        "q = asyncio.Queue(8)\nq = asyncio.Queue(maxsize=_MOST)\nq = deque(maxlen=2 * N)\nq = deque(a, 5)\n"
    )
    assert unbounded(path) == []
    path.write_text(
        "# TaskGroup\nasyncio.create_task(f())\nensure_future(f())\nloop.create_task(f())\n"
        "async def g():\n    async with asyncio.TaskGroup() as tasks:\n        tasks.create_task(f())\n"
        "        asyncio.create_task(f())\n"
    )
    assert [text.split(":")[1] for text in detached(path)] == ["2", "3", "4", "8"]
