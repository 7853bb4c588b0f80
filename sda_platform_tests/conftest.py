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

# No timed unit tests: on a busy machine a deadline fails what is right. A test that needs more examples states so;
# `--hypothesis-profile soak` tries many more of all others.
settings.register_profile("platform", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("platform"), max_examples=1000)
settings.load_profile("platform")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its folder's kind: ``-m unit`` is ``sda_platform_tests/unit``."""
    for item in items:
        kind = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
        if kind in _KINDS:
            item.add_marker(kind)


class _OneSession(LoadFileScheduling):  # type: ignore[misc]  # xdist's schedulers have no types
    """A worker takes a whole file, and one worker all pipeline tests, which share a Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0])
        return "pipeline" if file.parent.name == "pipeline" else str(file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """With ``--dist loadfile`` the pipeline tests stay together."""
    return _OneSession(config, log) if config.getvalue("dist") == "loadfile" else None


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
