"""Real Serf agents: failure, departure and return reach the merged fleet and the failover of an uplink."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.clock import MissionClock
from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT
from sda_platform.ground.current_fleet import current_fleet
from sda_platform.ground.reporting import ViewReporter, change_registry
from sda_platform.ground.serf import SerfWatch
from sda_platform.ground.tables import MEMBERSHIP_FEED
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.serf_agents import SerfAgents, serf_agents, serf_binary

pytestmark = pytest.mark.skipif(serf_binary() is None, reason="no serf here: `apt-get install serf`")

STATIONS = ("north", "south", "east", "west")
LIMIT_S = 60.0


class Fleet:
    """Agents whose views are reported, and the fleet that follows from the reports."""

    def __init__(self, home: Path, agents: SerfAgents) -> None:
        self.home, self.agents = home, agents
        self.zone = LandingZone(str(home / "landing"), MEMBERSHIP_FEED)
        self.clock = MissionClock(START_NS, time.time_ns(), 1.0)
        self.reporters = {name: self.reporter(name) for name in STATIONS}

    def reporter(self, name: str) -> ViewReporter:
        return ViewReporter(self.agents.start(name), self.zone, self.home / "fleet", self.clock.now_ns)

    def statuses(self, *reporting: str) -> dict[str, str | None]:
        """The merged status of each member after a round of these reporters."""
        for name in reporting:
            self.reporters[name].round(time.monotonic())
        rows = current_fleet(lake_at(self.home / "lake"), str(self.home / "landing"))
        return {row["member"]: row["status"] for row in rows if row["is_registered"]}

    def becomes(self, expected: dict[str, str], *reporting: str) -> None:
        assert eventually(lambda: self.statuses(*reporting) == expected, LIMIT_S), self.statuses()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with serf_agents(tmp_path) as agents:
        found = Fleet(tmp_path, agents)
        change_registry(found.zone, START_NS, "ann", STATIONS, admits=True)
        yield found


def test_failure_departure_and_return_of_agents_reach_the_merged_fleet__TG7_TG23_TG25(fleet: Fleet) -> None:
    everybody = dict.fromkeys(STATIONS, "alive")
    fleet.becomes(everybody, *STATIONS)
    watch = SerfWatch(fleet.agents.agents["north"])
    assert eventually(lambda: watch.status("west") == ALIVE and watch.status("nobody") == ALIVE, LIMIT_S)

    fleet.agents.signal("west", signal.SIGKILL)
    others = ("north", "south", "east")
    fleet.becomes({**everybody, "west": "failed"}, *others)
    assert eventually(lambda: watch.status("west") == DEAD, LIMIT_S)

    first = fleet.reporters["west"].generation
    fleet.reporters["west"] = fleet.reporter("west")
    fleet.becomes(everybody, *STATIONS)
    assert fleet.reporters["west"].generation > first

    fleet.agents.signal("east", signal.SIGINT)
    fleet.becomes({**everybody, "east": "left"}, "north", "south", "west")
    assert eventually(lambda: watch.status("east") == LEFT, LIMIT_S)
