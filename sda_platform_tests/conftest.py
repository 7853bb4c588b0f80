"""What every test shares: the marker of its folder, and hypothesis without a clock."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

_HERE = Path(__file__).parent
_KINDS = ("unit", "pipeline", "system")
# They use the fixture `lived`, whose platform takes a minute: one worker makes it once, and begins with it.
_SHARE_A_HISTORY = ("test_replay.py", "test_tracks.py")
_WITH_HISTORY = "history"
# Statements of tests are small and few: to compile them once, quickly, costs less than to optimise them. By default
# Java then has 48 MB for compiled code. Spark fills them within minutes, and from then on Java only interprets.
_SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"

# No timed unit tests: on a busy machine a deadline fails what is right. A test that needs more examples states so;
# `--hypothesis-profile soak` tries many more of all others.
settings.register_profile("platform", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("platform"), max_examples=1000)
settings.load_profile("platform")


def pytest_configure() -> None:
    """Every Java process of the tests is short-lived; a value that the environment has is kept."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", _SHORT_LIVED_JAVA)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its folder's kind: ``-m unit`` is ``sda_platform_tests/unit``."""
    for item in items:
        kind = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
        if kind in _KINDS:
            item.add_marker(kind)


class _FromBothEnds(LoadFileScheduling):  # type: ignore[misc]  # xdist's schedulers have no types
    """A worker takes whole files: the first one the pipeline tests, the others the system tests from the last on.

    A worker that has finished its kind takes from what is left, so that all end at nearly the same time.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0])
        return _WITH_HISTORY if file.name in _SHARE_A_HISTORY else str(file)

    def _assign_work_unit(self, node: Any) -> None:
        is_first = node is self.nodes[0]
        following = next(iter(self.workqueue) if is_first else reversed(self.workqueue))
        longest = is_first and _WITH_HISTORY in self.workqueue
        self.workqueue.move_to_end(_WITH_HISTORY if longest else following, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """With ``--dist loadfile``, files are taken from both ends of their order, which is that of their names."""
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return _FromBothEnds(config, log)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The files and directories that this process syncs, by name."""
    names: Counter[str] = Counter()
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        names[Path(f"/proc/self/fd/{descriptor}").readlink().name] += 1
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    return names
