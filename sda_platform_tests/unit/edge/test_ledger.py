"""The ledger over a restart: after an orderly end, and after a process that was killed."""

from pathlib import Path

import pytest

from sda_platform.edge.ledger import Account, Ledger
from sda_platform.edge.priority import Priority


def test_the_ledger_goes_on_after_a_restart__44(tmp_path: Path) -> None:
    first = Ledger(tmp_path)
    account = first.account("radar-a", Priority.HIGH)
    account.received, account.sealed, account.deferred, account.dropped = 10, 7, 2, 3
    first.note()
    second = Ledger(tmp_path)
    assert second.accounts() == {("radar-a", Priority.HIGH): account}
    second.account("radar-a", Priority.HIGH).received += 1
    assert second.of_source("radar-a").in_flight == 1


def test_what_a_killed_process_had_in_memory_is_unsettled__44(tmp_path: Path) -> None:
    killed = Ledger(tmp_path)
    killed.account("radar-a", Priority.LOW).received = 5
    killed.note()
    killed.account("radar-a", Priority.LOW).received = 9  # after the last note
    found = Ledger(tmp_path).of_source("radar-a")
    assert (found, found.in_flight) == (Account(received=5, unsettled=5), 0)


@pytest.mark.parametrize("text", ["{", "[]", "[1]", '[{"source": "a"}]', '[{"source": "a", "priority": "none"}]'])
def test_a_damaged_note_begins_anew__44(tmp_path: Path, text: str) -> None:
    (tmp_path / "ledger.json").write_text(text)
    assert Ledger(tmp_path).accounts() == {}
