"""The breaker before launches: three failures stop them, and an empty worker that starts lets them go on."""

from pathlib import Path

from sda_platform.orchestration.launch_breaker import LaunchBreaker, why_nothing_starts


class Host:
    """A worker host: ``is_well`` whether it can start a worker; None: it does not answer. ``asked``: how often."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.is_well: bool | None = False
        self.asked = 0

    def can_start(self) -> bool:
        self.asked += 1
        if self.is_well is None:
            raise ConnectionError("no answer")
        return self.is_well


def opened(home: Path, host: Host) -> LaunchBreaker:
    breaker = LaunchBreaker(home, host.can_start, lambda: host.now_s)
    for _ in range(3):
        assert breaker.allows()
        breaker.failed("OSError: Too many open files")
    return breaker


def test_two_failures_stop_nothing_and_a_launch_ends_the_count(tmp_path: Path) -> None:
    host = Host()
    breaker = LaunchBreaker(tmp_path, host.can_start, lambda: host.now_s)
    for _ in range(5):
        breaker.failed("first")
        breaker.failed("second")
        assert (breaker.allows(), why_nothing_starts(tmp_path)) == (True, "")
        breaker.succeeded()
    assert (host.asked, list(tmp_path.iterdir())) == (0, [])


def test_three_failures_stop_launches_and_the_host_is_asked_ever_less_often(tmp_path: Path) -> None:
    host = Host()
    breaker = opened(tmp_path, host)
    assert why_nothing_starts(tmp_path) == "OSError: Too many open files"
    asked_s = []
    for _ in range(600):
        before = host.asked
        assert not breaker.allows()
        asked_s += [host.now_s - 1000.0] * (host.asked - before)
        host.now_s += 0.5
    assert asked_s == [5.0, 15.0, 35.0, 75.0, 135.0, 195.0, 255.0]


def test_a_worker_that_starts_lets_runs_start_again_also_for_other_processes(tmp_path: Path) -> None:
    host = Host()
    opened(tmp_path, host)
    host.now_s, host.is_well = host.now_s + 6.0, None
    other = LaunchBreaker(tmp_path, host.can_start, lambda: host.now_s)
    assert not other.allows()
    assert why_nothing_starts(tmp_path) == "ConnectionError: no answer"
    host.now_s, host.is_well = host.now_s + 11.0, True
    assert other.allows()
    assert (why_nothing_starts(tmp_path), host.asked) == ("", 2)
    assert other.allows()
    assert host.asked == 2


def test_a_damaged_file_stops_nothing(tmp_path: Path) -> None:
    host = Host()
    opened(tmp_path, host)
    (file,) = tmp_path.iterdir()
    file.write_text("no json")
    assert LaunchBreaker(tmp_path, host.can_start, lambda: host.now_s).allows()
