"""Another user of the machine neither reads what the platform keeps nor submits to it."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.private_home import make_private, own_umask, private_content, private_files
from sda_platform.runtime.platform_home import prepare, take_lock, write_state
from sda_platform.spark.channel import kept_token
from sda_platform_tests.support.second_user import ANOTHER, as_another_user

TLE = (
    "ISS (ZARYA)",
    "1 25544U 98067A   24306.17453704  .00022844  00000+0  40391-3 0  9995",
    "2 25544  51.6393 356.2817 0009296  77.9131  33.2203 15.49933303479592",
)
FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture
def home() -> Iterator[Path]:
    """In a directory that all users may enter."""
    with tempfile.TemporaryDirectory(prefix="sda-home-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "home"


def open_to_others(home: Path) -> list[str]:
    return [
        str(each) for each in (home, *home.rglob("*")) if each.lstat().st_mode & FOR_OTHERS and not each.is_symlink()
    ]


def test_another_user_reads_nothing_of_a_home_and_puts_nothing_there__S10(home: Path) -> None:
    with private_files(0o077), take_lock(home):
        prepare(home, "127.0.0.1:4000", {})
        write_state(home, {"pid": 1})
        token = home / "engine/token"
        kept_token(token)
        (home / "landing/radar/pending").mkdir(parents=True)
        assert open_to_others(home) == []
        home.chmod(0o755)
        assert as_another_user(home.iterdir().__next__) == "done", "this is what the attempts below would do"
        assert as_another_user(token.read_text) == "PermissionError"
        make_private(home)
        for attempt in (
            lambda: list(home.iterdir()),
            (home / "platform.json").read_text,
            token.read_text,
            (home / "landing/radar/pending/forged.seg").touch,
            (home / "dagster/dagster.yaml").read_text,
        ):
            assert as_another_user(attempt) == "PermissionError"


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750])
def test_a_home_of_an_earlier_version_is_closed(home: Path, mode: int) -> None:
    home.mkdir()
    home.chmod(mode)
    with private_files(0o077), take_lock(home):
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_group_may_be_let_in(home: Path) -> None:
    with private_files(0o027), take_lock(home):
        assert stat.S_IMODE(home.stat().st_mode) == 0o750
        assert stat.S_IMODE((home / "platform.lock").stat().st_mode) == 0o640


def test_the_umask_is_that_of_before_after_the_block() -> None:
    before = own_umask()
    with private_files(0o077):
        assert own_umask() == 0o077
    assert own_umask() == before


def test_each_command_keeps_what_it_makes_from_others__S10(home: Path) -> None:
    """Its children, too: they inherit the umask."""
    file = home.parent / "sets.tle"
    file.write_text("\n".join(TLE) + "\n")
    earlier = os.umask(0)
    try:
        answer = CliRunner().invoke(main, ["--home", str(home), "land", str(file)], catch_exceptions=False)
        assert own_umask() == 0
    finally:
        os.umask(earlier)
    assert answer.exit_code == 0, answer.output
    assert list((home / "landing/elements/pending").iterdir())
    assert open_to_others(home) == []


@pytest.mark.parametrize(
    ("owner", "mode", "becomes"),
    [
        (0, 0o440, "done"),
        (0, 0o444, "ExposedFile"),
        (0, 0o460, "ExposedFile"),
        (ANOTHER, 0o440, "ExposedFile"),
        (ANOTHER, 0o400, "done"),
    ],
)
def test_a_secret_of_root_may_be_read_by_the_group_that_it_was_handed_to(
    home: Path, owner: int, mode: int, becomes: str
) -> None:
    """As Kubernetes mounts a secret into a pod whose user is not root."""
    home.mkdir(mode=0o755)
    secret = home / "secret"
    secret.write_bytes(b"of the test")
    os.chown(secret, owner, ANOTHER)
    secret.chmod(mode)
    assert as_another_user(lambda: private_content(secret)) == becomes
