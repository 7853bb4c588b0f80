"""Who may command a station: signed requests, and two persons for an emergency."""

import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.formats.ground_events import CONFIRMED, GroundEvent
from sda_platform.ground.commanders import (
    CommandAuthority,
    CommandersError,
    CommandersOnDisk,
    confirmation_refusal,
)
from sda_platform.ground.issued_commands import IssuedCommands
from sda_platform_tests.support.commanders import COMMANDERS, KEYS, RIGHTS, by, log_of, request, sent
from sda_platform_tests.support.ground_loop import ground_at
from sda_platform_tests.support.segments import START_NS, after


def test_an_emergency_needs_a_second_person_who_may_confirm_it__46_3() -> None:
    issued = by("ann").issued(request("c"))
    assert sent([issued]) == ([], {})
    confirmed = by("bob").confirmed(asdict(issued), START_NS)
    assert sent([issued, confirmed]) == (["c"], {})
    assert sent([confirmed, issued]) == (["c"], {}), "segments are read in any order"
    repoint = by("scheduler").issued(request("r", "REPOINT"))
    assert sent([repoint]) == (["r"], {}), "what is no emergency needs one person"


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("bob", "SAFE_MODE", "bob may not issue SAFE_MODE: ann may"),
        ("scheduler", "EMERGENCY_ABORT", "scheduler may not issue EMERGENCY_ABORT: nobody may"),
        ("eve", "REPOINT", "eve is no commander in SDA_COMMANDERS"),
    ],
)
def test_who_may_not_issue_is_refused_with_who_may__46_3(name: str, kind: str, reason: str) -> None:
    with pytest.raises(CommandersError) as refused:
        by(name).issued(request("c", kind))
    assert str(refused.value) == reason
    # What goes round the command line is refused by the uplink for the same reason.
    assert sent([by(name)._signed(request("c", kind), "")]) == ([], {"c": reason})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ann", "ann issued it: another person must confirm it"),
        ("scheduler", "scheduler may not confirm SAFE_MODE: ann, bob may"),
        ("eve", "eve is no commander in SDA_COMMANDERS"),
    ],
)
def test_who_may_not_confirm_is_refused_with_the_reason__46_3(name: str, reason: str) -> None:
    issued = by("ann").issued(request("c"))
    with pytest.raises(CommandersError) as refused:
        by(name).confirmed(asdict(issued), START_NS)
    assert str(refused.value) == reason


def test_one_person_with_two_names_is_one_person() -> None:
    twice = {**COMMANDERS, "ann-again": replace(COMMANDERS["ann"])}
    issued = CommandAuthority(twice, "ann", KEYS["ann"]).issued(request("c"))
    with pytest.raises(CommandersError, match="another person"):
        CommandAuthority(twice, "ann-again", KEYS["ann"]).confirmed(asdict(issued), START_NS)


def test_without_commanders_requests_need_no_signature() -> None:
    issued = CommandAuthority().issued(request("c"))
    assert (issued.person, issued.signature) == ("", "")
    with pytest.raises(CommandersError, match="needs no confirmation: SDA_COMMANDERS names no one"):
        CommandAuthority().confirmed(asdict(issued), START_NS)


def attacks(chosen: random.Random, issued: GroundEvent, other: GroundEvent) -> Iterator[GroundEvent]:
    """Events that somebody without a key of a second person can write."""
    genuine_of_other = by("bob").confirmed(asdict(other), START_NS)
    yield replace(issued, event=CONFIRMED)
    yield replace(issued, event=CONFIRMED, person="bob")
    yield replace(genuine_of_other, command_id=issued.command_id)
    yield replace(genuine_of_other, **{n: getattr(issued, n) for n in ("command_id", "issued_time_ns")})
    yield replace(issued, event=CONFIRMED, person="bob", signature=chosen.randbytes(64).hex())
    yield replace(by("eve")._signed(replace(issued, event=CONFIRMED), issued.signature), person="bob")
    yield replace(issued, event=CONFIRMED, person="bob", signature="no hexadecimal")


@pytest.mark.parametrize("seed", range(20))
def test_no_forged_or_moved_confirmation_sends_an_emergency__46_3(seed: int) -> None:
    chosen = random.Random(seed)
    issued, other = by("ann").issued(request("c")), by("ann").issued(request("d"))
    forged = list(attacks(chosen, issued, other))
    events = [issued, *forged]
    chosen.shuffle(events)
    assert sent(events) == ([], {})
    assert all(confirmation_refusal(asdict(each), asdict(issued), COMMANDERS) for each in forged)
    # They do not keep the genuine one from counting.
    genuine = by("bob").confirmed(asdict(issued), START_NS)
    events.insert(chosen.randrange(len(events) + 1), genuine)
    assert sent(events) == (["c"], {})


@pytest.mark.parametrize(
    "changed", [{"kind": "EMERGENCY_ABORT"}, {"expires_time_ns": after(9000)}, {"station": "pacific"}]
)
def test_a_request_that_was_changed_is_refused__46_3(changed: dict[str, Any]) -> None:
    ((_, why),) = sent([replace(by("ann").issued(request("c")), **changed)])[1].items()
    assert "signature" in why or "may not issue" in why


def test_a_right_that_is_taken_away_counts_no_more_and_a_torn_file_changes_nothing__46_3(tmp_path: Path) -> None:
    file = tmp_path / "commanders.toml"

    def write(**rights: tuple[set[str], set[str]]) -> None:
        text = ""
        for name, (issues, confirms) in rights.items():
            pem = KEYS[name].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            (tmp_path / f"{name}.pub").write_bytes(pem)
            text += f'[commanders.{name}]\nkey = "{name}.pub"\n'
            text += f"issues = {sorted(issues)}\nconfirms = {sorted(confirms)}\n"
        file.write_text(text)
        file.chmod(0o600)

    write(ann=RIGHTS["ann"], bob=RIGHTS["bob"])
    issued = IssuedCommands(CommandersOnDisk(str(file)))
    requests = {name: by("ann").issued(request(name)) for name in ("first", "second", "third", "fourth")}
    issued.add(map(asdict, requests.values()))

    def confirm(name: str) -> list[str]:
        issued.add([asdict(by("bob").confirmed(asdict(requests[name]), START_NS))])
        return [each.command_id for each in issued.take_while(lambda _: True)]

    assert confirm("first") == ["first"]
    write(bob=RIGHTS["bob"])
    assert confirm("second") == [], "who issued it may command no more"
    ((_, why),) = issued.add([asdict(by("ann").issued(request("r", "REPOINT")))])
    assert "ann" in why
    write(ann=RIGHTS["ann"], bob=RIGHTS["bob"])
    assert confirm("third") == ["third"]
    file.write_text("[commanders.ann]\nbroken")
    assert issued.add([asdict(by("ann").issued(request("s", "REPOINT")))]) == [], "refused, it were so for good"
    assert [each.command_id for each in issued.take_while(lambda _: True)] == ["s"]
    file.unlink()
    assert issued.add([asdict(request("unsigned", "HOUSEKEEPING"))]), "a lost file opens nothing"
    write(ann=RIGHTS["ann"], bob=RIGHTS["bob"])
    assert confirm("fourth") == ["fourth"]


def test_an_unconfirmed_emergency_expires_and_holds_nothing_up() -> None:
    waiting = IssuedCommands(COMMANDERS)
    waiting.add([asdict(by("ann").issued(request("c"))), asdict(by("scheduler").issued(request("r", "REPOINT")))])
    assert [each.command_id for each in waiting.take_while(lambda _: True)] == ["r"]
    assert waiting.take_expired(after(599)) == []
    assert [each.command_id for each in waiting.take_expired(after(600))] == ["c"]


def test_uplinks_send_what_two_persons_requested_and_record_both__46_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ground_at(tmp_path, monkeypatch) as ground:
        ground.uplink("primary", commanders=COMMANDERS)
        log_of(ground, "ann").issue("SAFE_MODE", expires_in_s=600, command_id="both")
        log_of(ground, "ann").issue("SAFE_MODE", expires_in_s=600, command_id="one")
        ground.log().issue("HOUSEKEEPING", expires_in_s=600, command_id="unsigned")
        ground.run(1)
        log_of(ground, "bob").confirm("both")
        ground.run(1)
        assert ground.executed() == ["both"]
        rows = ground.rows()
        assert {name: (row["state"], row["issued_by"], row["confirmed_by"]) for name, row in rows.items()} == {
            "both": ("acknowledged", "ann", "bob"),
            "one": ("issued", "ann", None),
            "unsigned": ("rejected", None, None),
        }
        assert "set SDA_COMMANDER_KEY" in str(rows["unsigned"]["detail"])
        # The backup, which takes over, reads both from the log.
        log_of(ground, "bob").confirm("one")
        ground.uplink("backup", commanders=COMMANDERS)
        ground.run(3, "backup")
        assert ground.executed() == ["both", "one"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    for name in RIGHTS:
        assert ground(tmp_path, "commander-key", str(tmp_path / name)).exit_code == 0
    entries = [
        f'[commanders.{name}]\nkey = "{name}.pub"\nissues = {sorted(issues)}\nconfirms = {sorted(confirms)}\n'
        for name, (issues, confirms) in RIGHTS.items()
    ]
    (tmp_path / "commanders.toml").write_text("".join(entries))
    (tmp_path / "commanders.toml").chmod(0o600)
    monkeypatch.setenv("SDA_COMMANDERS", str(tmp_path / "commanders.toml"))
    return tmp_path


def ground(home: Path, *arguments: str, key: str = "") -> Result:
    env = {"SDA_COMMANDER_KEY": str(home / key) if key else ""}
    return CliRunner().invoke(main, ["--home", str(home), "ground", *arguments], env=env)


def test_the_command_line_refuses_clearly_and_names_the_next_step__46_3(home: Path) -> None:
    issue = ("issue", "SAFE_MODE", "--station", "atlantic")
    for key, reason in (
        ("", "it is not signed: set SDA_COMMANDER_KEY"),
        ("bob", "bob may not issue SAFE_MODE: ann may"),
    ):
        answer = ground(home, *issue, key=key)
        assert answer.exit_code == 1
        assert reason in answer.output
    made = ground(home, *issue, key="ann")
    command_id = made.stdout.strip()
    assert f"another person confirms it: sda ground confirm {command_id} --station atlantic" in made.stderr
    confirm = ("confirm", command_id, "--station", "atlantic")
    assert "ann issued it: another person must confirm it" in ground(home, *confirm, key="ann").output
    assert "may not confirm SAFE_MODE: ann, bob may" in ground(home, *confirm, key="scheduler").output
    assert "has no command 'nothing'" in ground(home, "confirm", "nothing", "--station", "atlantic", key="bob").output
    confirmed = ground(home, *confirm, key="bob")
    assert confirmed.output.startswith("confirmed by bob: SAFE_MODE, expires 2024-")
    listed = ground(home, "list", "--station", "atlantic", "--json").output
    assert '"issued_by": "ann"' in listed and '"confirmed_by": "bob"' in listed
    MissionClock(after(700), 0, 0.0).save(home)
    assert "waits for no confirmation: it is expired" in ground(home, *confirm, key="bob").output


def test_a_key_of_nobody_is_refused(home: Path) -> None:
    assert ground(home, "commander-key", str(home / "stranger")).exit_code == 0
    answer = ground(home, "issue", "REPOINT", "--station", "atlantic", key="stranger")
    assert "this key is of no commander in" in answer.output
    (home / "commanders.toml").chmod(0o666)
    assert "others may write it" in ground(home, "issue", "REPOINT", "--station", "atlantic", key="ann").output
    (home / "commanders.toml").chmod(0o600)
    (home / "bob.pub").chmod(0o666)
    # Who may write it could confirm in the name of bob.
    assert "bob.pub: others may write it" in ground(home, "issue", "REPOINT", "--station", "atlantic", key="ann").output
