"""Adding a channel: it is in force at once, its address is private, and a failure adds nothing."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform.notification import new_channel
from sda_platform.notification.notify_file import NotifyFile
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook

OWN = """# Agreed on 3 May.
console = "https://sda.example.org/console"

[channels.pager]   # of the shift
url_variable = "PAGER"

[[rules]]
name = "red"
channels = ["pager"]
levels = ["red"]
"""


def add(home: Path, address: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "channel", "add", *arguments], input=f"{address}\n")


def address_of(server: FailureWebhook, password: str = "") -> str:
    return f"json://{password}127.0.0.1:{server.server_address[1]}/hook"


def content(home: Path) -> NotifyFile:
    return NotifyFile.model_validate(tomllib.loads((home / "notify.toml").read_text()))


def test_a_channel_that_takes_a_test_message_is_in_force(tmp_path: Path) -> None:
    with failure_webhook() as server:
        options = ["--level", "red", "--satellite", "25544", "--within", "3d", "--quiet", "22:00-06:00"]
        answer = add(tmp_path, address_of(server, "user:s3cret@"), "desk", *options, "--timezone", "Europe/Berlin")
        assert answer.exit_code == 0, answer.output
        ((_, message),) = server.received
        tested = CliRunner().invoke(main, ["--home", str(tmp_path), "channel", "test", "desk", "--json"])
        assert (tested.exit_code, json.loads(tested.stdout)) == (0, [{"channel": "desk", "result": "taken"}])
    assert message["title"] == "Test of the SDA platform" and "s3cret" not in answer.output
    (rule,) = content(tmp_path).rules
    assert (rule.channels, rule.levels, rule.satellites) == (("desk",), ("red",), ("25544",))
    assert (str(rule.timezone), rule.within) == ("Europe/Berlin", 3 * 86_400 * 10**9)
    secret = Path(content(tmp_path).channels["desk"].url_file)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600 and "s3cret" in secret.read_text()


def test_what_a_person_wrote_stays_and_the_rules_are_added(tmp_path: Path) -> None:
    (tmp_path / "notify.toml").write_text(OWN)
    for name in ("desk", "hook"):
        assert add(tmp_path, "json://127.0.0.1:9/hook", name, "--no-test").exit_code == 0
    text = (tmp_path / "notify.toml").read_text()
    assert text.startswith(OWN.split("[[rules]]")[0].rstrip()) and "# Agreed on 3 May." in text
    assert [*content(tmp_path).channels] == ["pager", "desk", "hook"]
    assert [rule.name for rule in content(tmp_path).rules] == ["red", "alerts to desk", "alerts to hook"]


def test_a_directory_of_others_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rules, such as /etc; the home alone is the platform's own."""
    place = tmp_path / "etc"
    place.mkdir(mode=0o755)
    place.chmod(0o755)
    monkeypatch.setenv("SDA_NOTIFY", str(place / "notify.toml"))
    assert add(tmp_path / "home", "json://127.0.0.1:9/hook", "desk", "--no-test").exit_code == 0
    assert stat.S_IMODE(place.stat().st_mode) == 0o755
    assert stat.S_IMODE((place / "channel-desk.url").stat().st_mode) == 0o600


def test_an_interrupted_test_message_leaves_no_address_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(new_channel, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        new_channel.add_channel(tmp_path / "notify.toml", "desk", "json://127.0.0.1:9/hook", {})
    assert [*tmp_path.iterdir()] == []


def test_the_address_of_the_console_precedes_the_tables(tmp_path: Path) -> None:
    (tmp_path / "notify.toml").write_text(OWN.replace('console = "https://sda.example.org/console"\n', ""))
    answer = add(tmp_path, "json://127.0.0.1:9/hook", "desk", "--no-test", "--console", "https://x.example.org/console")
    assert answer.exit_code == 0, answer.output
    assert content(tmp_path).console == "https://x.example.org/console"


@pytest.mark.parametrize(
    ("address", "arguments", "reason"),
    [
        ("json://127.0.0.1:9/hook", ["pager", "--no-test"], "there is a channel 'pager' already"),
        ("json://127.0.0.1:9/s3cret", ["desk"], "did not take a test message, so nothing was added"),
        ("nonsense s3cret", ["desk"], "its address is none that can be used"),
        ("", ["desk", "--no-test"], "its address is none that can be used"),
        ("nonsense s3cret", ["desk", "--no-test"], "its address is none that can be used"),
        ("json://127.0.0.1:9/hook", ["a/b", "--no-test"], "'a/b' is no name of a channel"),
        ("json://127.0.0.1:9/hook", ["desk", "--no-test", "--within", "soon"], "within"),
        ("json://127.0.0.1:9/hook", ["desk", "--no-test", "--timezone", "Mars"], "timezone"),
    ],
)
def test_a_channel_that_cannot_be_added_changes_nothing(
    tmp_path: Path, address: str, arguments: list[str], reason: str
) -> None:
    (tmp_path / "notify.toml").write_text(OWN)
    answer = add(tmp_path, address, *arguments)
    assert answer.exit_code == 1 and reason in answer.stderr, answer.output
    assert "s3cret" not in answer.output
    assert [path.name for path in tmp_path.iterdir()] == ["notify.toml"]
    assert (tmp_path / "notify.toml").read_text() == OWN
