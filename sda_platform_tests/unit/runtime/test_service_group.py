"""The group of a platform's processes: a collector is started once its configuration is there."""

from pathlib import Path

import pytest

from sda_platform.runtime.processes import Service
from sda_platform.runtime.service_group import ServiceGroup


def test_a_collector_is_started_once_when_its_configuration_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(Service, "start", lambda service: started.append(service.name))
    monkeypatch.setattr(ServiceGroup, "_write_state", lambda *_, **__: None)
    group = ServiceGroup(tmp_path, "mark", {}, started.append, lambda: None)
    config = tmp_path / "collect.toml"
    assert not group.begin_collecting({}, None)
    assert not group.begin_collecting({}, config)
    config.write_text("")
    assert group.begin_collecting({}, config)
    assert not group.begin_collecting({}, config)
    assert started == ["collector: starting", "collector"]
