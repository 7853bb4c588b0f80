"""The Raft model: directed scenarios of the paper, and seeded schedules with planted bugs that must be found."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from sda_platform_tests.models.raft.invariants import Invariants
from sda_platform_tests.models.raft.log import Disk, Entry, RegisterRequest, Snapshot, VoterChange
from sda_platform_tests.models.raft.messages import Append, Appended, Install, RaftRules, Vote, VoteRequest
from sda_platform_tests.models.raft.network import Network
from sda_platform_tests.models.raft.node import RaftNode
from sda_platform_tests.models.raft.schedule import run

THREE, FIVE = ("a", "b", "c"), ("a", "b", "c", "d", "e")


class Cluster:
    """Nodes that step together over a network without faults of its own."""

    def __init__(
        self, names: Iterable[str], logs: dict[str, list[int]] | None = None, *, compact_at: int = 1000
    ) -> None:
        self.names = tuple(names)
        self.network, self.now, self.compact_at = Network(random.Random(1), slowest=1), 0, compact_at
        self.nodes = dict[str, RaftNode]()
        for name in self.names:
            terms = (logs or {}).get(name, [])
            disk = Disk(Snapshot(0, 0, frozenset(self.names), {}, {}), term=max(terms, default=0))
            disk.append(Entry(term, index, None) for index, term in enumerate(terms, 1))
            self.restart(name, disk)

    def restart(self, name: str, disk: Disk) -> None:
        chance = random.Random(self.names.index(name) if name in self.names else 99)
        self.nodes[name] = RaftNode(name, disk, chance, self.now, RaftRules(), compact_at=self.compact_at)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.now += 1
            for sender, target, message in self.network.arriving(self.now):
                self.nodes[target].receive(sender, message, self.now)
            for name, node in self.nodes.items():
                node.tick(self.now)
                for target, message in node.outbox:
                    self.network.send(name, target, message, self.now)
                node.outbox.clear()

    def leaders(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.leading is not None]

    def lead(self) -> RaftNode:
        self.steps(60)
        (name,) = self.leaders()
        return self.nodes[name]


def write(client: int, number: int, value: object) -> RegisterRequest:
    return RegisterRequest(client, number, "key", "write", value)


def test_one_leader_is_elected_and_a_successor_after_it_is_cut_off__OR4_OR28() -> None:
    cluster = Cluster(FIVE)
    first = cluster.lead()
    cluster.network.partition({first.name})
    cluster.steps(60)
    (second,) = cluster.leaders()
    assert second != first.name, "the former leader stopped, since it heard no majority"
    assert first.disk.term < cluster.nodes[second].disk.term


@pytest.mark.parametrize(("behind", "ahead"), [([1, 1, 1, 1], [1, 2]), ([1], [1, 2])], ids=["longer", "shorter"])
def test_a_log_with_an_older_last_term_is_not_elected__OR8_OR18(behind: list[int], ahead: list[int]) -> None:
    cluster = Cluster(THREE, {"a": ahead, "b": ahead, "c": behind})
    node = cluster.nodes["a"]
    node.receive("c", VoteRequest(9, len(behind), behind[-1], False), 0)
    assert node.outbox == [("c", Vote(9, False, False))]
    cluster.nodes["a"].outbox.clear()
    assert cluster.lead().name in ("a", "b")
    assert cluster.nodes["c"].disk.entries == cluster.nodes["a"].disk.entries


@pytest.mark.parametrize(("rules", "committed"), [(RaftRules(), 0), (RaftRules(counts_own_term=False), 2)])
def test_an_entry_of_an_older_term_is_not_committed_by_counting__OR21(rules: RaftRules, committed: int) -> None:
    # Figure 8 of the paper: in term 4 `a` replicates an entry of term 2 to a majority; `e` has one of term 3.
    disk = Disk(Snapshot(0, 0, frozenset(FIVE), {}, {}), term=3)
    disk.append([Entry(1, 1, None), Entry(2, 2, None)])
    node = RaftNode("a", disk, random.Random(1), 0, replace(rules, tries_votes_first=False))
    node.tick(30)
    for voter in ("b", "c"):
        node.receive(voter, Vote(4, True, False), 31)
    for follower in ("b", "c"):
        node.receive(follower, Appended(4, True, 2, 1), 32)
    assert node.commit == committed
    for follower in ("b", "c"):
        node.receive(follower, Appended(4, True, 3, 1), 33)
    assert node.commit == 3, "with an entry of its own term the earlier ones are committed too"


def test_a_leader_without_a_majority_commits_nothing_and_its_entry_is_replaced__OR7_OR12_OR23() -> None:
    cluster = Cluster(FIVE)
    old = cluster.lead()
    cluster.network.partition({old.name, next(name for name in FIVE if name != old.name)})
    before = old.commit
    old.submit(write(1, 1, "lost"), 1)
    cluster.steps(60)
    assert old.commit == before
    assert old.answers == []
    new = next(cluster.nodes[name] for name in cluster.leaders() if name != old.name)
    new.submit(write(2, 1, "kept"), 2)
    cluster.steps(20)
    assert new.answers == [(2, True)]
    cluster.network.heal()
    cluster.steps(60)
    assert {node.machine.values["key"] for node in cluster.nodes.values()} == {"kept"}


def test_all_nodes_restart_and_no_committed_entry_is_lost__OR9() -> None:
    cluster = Cluster(THREE)
    leader = cluster.lead()
    for number in range(20):
        leader.submit(write(1, number + 1, number), number)
    cluster.steps(30)
    assert leader.machine.values["key"] == 19
    for name in THREE:
        cluster.restart(name, cluster.nodes[name].disk)
    cluster.steps(90)
    assert {node.machine.values.get("key") for node in cluster.nodes.values()} == {19}


def test_members_change_one_by_one__OR10_OR25_OR26() -> None:
    cluster = Cluster(THREE)
    leader = cluster.lead()
    cluster.restart("d", Disk(Snapshot(0, 0, frozenset(THREE), {}, {})))
    four = frozenset((*THREE, "d"))
    assert not leader.change_membership(frozenset({"a", "d", "e"}), cluster.now), "several at once"
    assert leader.change_membership(four, cluster.now)
    assert leader.disk.voters == frozenset(THREE), "it votes once it has the log"
    assert not leader.change_membership(frozenset({"a", "b"}), cluster.now), "one change at a time"
    cluster.steps(20)
    assert {node.disk.voters for node in cluster.nodes.values()} == {four}
    assert leader.change_membership(four - {leader.name}, cluster.now)
    cluster.steps(90)
    (successor,) = cluster.leaders()
    assert successor != leader.name, "a removed leader steps down"
    assert leader.leading is None
    assert cluster.nodes[successor].submit(write(1, 1, "after"), 1)
    cluster.steps(20)
    assert cluster.nodes[successor].machine.values["key"] == "after"


def test_a_follower_that_lacks_compacted_entries_takes_the_snapshot_and_what_follows__OR11_OR19_OR24() -> None:
    cluster = Cluster(THREE, compact_at=5)
    leader = cluster.lead()
    late = next(name for name in THREE if name != leader.name)
    cluster.network.partition({late})
    for number in range(12):
        leader.submit(write(1, number + 1, number), number)
        cluster.steps(4)
    assert leader.disk.snapshot.index > cluster.nodes[late].disk.last_index
    cluster.network.heal()
    cluster.steps(30)
    caught_up = cluster.nodes[late]
    assert caught_up.machine.values == leader.machine.values
    assert caught_up.disk.last_index == leader.disk.last_index
    assert caught_up.disk.entries[0].index == caught_up.disk.snapshot.index + 1 if caught_up.disk.entries else True


def test_an_installed_snapshot_replaces_the_log_exactly__OR19() -> None:
    disk = Disk(Snapshot(0, 0, frozenset(THREE), {}, {}), term=2)
    disk.append(Entry(1, index, None) for index in range(1, 8))
    node = RaftNode("a", disk, random.Random(1), 0, RaftRules())
    node.receive("b", Install(2, Snapshot(4, 2, frozenset(THREE), {"key": 1}, {}), 1), 1)
    assert (disk.entries, disk.last_index, node.applied, node.machine.values) == ([], 4, 4, {"key": 1})
    node.receive("b", Append(2, 4, 2, (Entry(2, 5, VoterChange(frozenset(THREE))),), 5, 2), 2)
    assert [entry.index for entry in disk.entries] == [5]


def test_a_node_that_was_cut_off_raises_no_term_and_disturbs_nobody__OR26() -> None:
    cluster = Cluster(THREE)
    leader = cluster.lead()
    alone = next(name for name in THREE if name != leader.name)
    term = leader.disk.term
    cluster.network.partition({alone})
    cluster.steps(200)
    assert cluster.nodes[alone].disk.term == term
    cluster.network.heal()
    cluster.steps(30)
    assert cluster.leaders() == [leader.name]
    assert leader.disk.term == term


def test_a_request_that_is_tried_again_applies_once__OR27() -> None:
    cluster = Cluster(THREE)
    leader = cluster.lead()
    swap = RegisterRequest(1, 1, "key", "compare_and_set", "new", None)
    for token in (1, 2):
        leader.submit(swap, token)
        cluster.steps(20)
    assert leader.answers == [(1, True), (2, True)], "the second one has the first one's answer"


def test_a_former_leader_answers_no_read__OR6() -> None:
    cluster = Cluster(THREE)
    leader = cluster.lead()
    leader.submit(write(1, 1, "old"), 1)
    cluster.steps(20)
    leader.answers.clear()
    leader.read("key", 2, cluster.now)
    cluster.steps(20)
    assert leader.answers == [(2, "old")]
    cluster.network.partition({leader.name})
    leader.read("key", 3, cluster.now)
    cluster.steps(60)
    assert leader.answers == [(2, "old")]


def test_a_schedule_is_a_function_of_its_seed() -> None:
    assert run(7) == run(7) != run(8)


def test_logs_that_do_not_match_are_found_while_they_differ_whichever_nodes_have_them__OR20() -> None:
    late = [Entry(1, 1, None), Entry(2, 2, None), Entry(3, 3, None)]
    logs = {
        "another term before": [Entry(1, 1, None), Entry(1, 2, None), Entry(3, 3, None)],
        "another command": [Entry(1, 1, None), Entry(2, 2, write(1, 1, "other"))],
    }
    for what, log in logs.items():
        invariants = Invariants()
        nodes = {name: RaftNode(name, Disk(Snapshot(0, 0, frozenset(FIVE), {}, {})), random.Random(1), 0, RaftRules())
                 for name in FIVE}  # fmt: skip
        for name, entries in (("a", late), ("c", log), ("b", late[:1])):
            nodes[name].disk.append(entries)
            invariants.check_log(nodes[name])
        # The logs are made equal again before the end.
        nodes["c"].disk.entries = list(late)
        invariants.check_log(nodes["c"])
        assert [each.startswith("the log of c differs") for each in invariants.violations] == [True], what


def test_no_schedule_breaks_a_rule__OR5_OR20_OR29_OR30() -> None:
    outcomes = [run(seed) for seed in range(120)]
    assert {each.seed: each.violations for each in outcomes if each.violations} == {}
    assert sum(each.leaders for each in outcomes) > 500, "the schedules must depose leaders"
    assert sum(each.snapshots_installed for each in outcomes) > 100
    assert sum(each.membership_changes for each in outcomes) > 30
    assert sum(each.answered for each in outcomes) > 4000
