"""The ledger: what became of every record, by source and priority, exactly.

    received = sealed + dropped + in flight + unsettled

It is on disk once a second and at the end, and goes on from there after a restart. ``unsettled`` are records that a
killed process had in memory at its last note: it sealed them later, or their senders send them again. What it received
after that note is not counted. ``deferred`` is the part of ``sealed`` that took the way round the burst. A record's
priority is the one that it was received with, also if it was deferred.
"""

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from upath import UPath

from sda_platform.edge.priority import Priority
from sda_platform.lake import durable


@dataclass
class Account:
    """Counts of records of one source and priority since the home was made."""

    received: int = 0
    sealed: int = 0
    deferred: int = 0
    dropped: int = 0
    unsettled: int = 0

    @property
    def in_flight(self) -> int:
        """Records that are in memory."""
        return self.received - self.sealed - self.dropped - self.unsettled


class Ledger:
    """The accounts of a collector, noted in ``directory``; None: they end with the process."""

    def __init__(self, directory: Path | None = None) -> None:
        self._accounts: defaultdict[tuple[str, Priority], Account] = defaultdict(Account)
        self._path = UPath(directory / "ledger.json") if directory else None
        self._noted = ""
        if self._path is not None:
            with suppress(FileNotFoundError, ValueError, KeyError, TypeError):  # what is damaged begins anew
                self._go_on(json.loads(self._path.read_bytes()))

    def _go_on(self, noted: list[dict[str, int | str]]) -> None:
        found = {}
        for each in map(dict, noted):
            source, label = str(each.pop("source")), str(each.pop("priority"))
            account = Account(**{name: int(count) for name, count in each.items()})
            account.unsettled += account.in_flight
            found[source, Priority[label.upper()]] = account
        self._accounts.update(found)

    def note(self) -> None:
        """Write the accounts to disk, where they have changed. Raises OSError."""
        text = json.dumps(
            [{"source": source, "priority": priority.label, **asdict(account)}
             for (source, priority), account in sorted(self.accounts().items())]
        )  # fmt: skip
        if self._path is not None and text != self._noted:
            durable.write(self._path, text.encode())
            self._noted = text

    def account(self, source: str, priority: Priority) -> Account:
        """Return the account of a source's records of one priority."""
        return self._accounts[source, priority]

    def accounts(self) -> dict[tuple[str, Priority], Account]:
        """All accounts."""
        return dict(self._accounts)

    def of_source(self, source: str) -> Account:
        """Return the sum over all priorities of a source."""
        found = [account for (name, _), account in self._accounts.items() if name == source]
        return Account(*(sum(getattr(each, name) for each in found) for name in Account.__dataclass_fields__))

    def to_json(self) -> list[dict[str, object]]:
        """One object per account."""
        return [
            {"source": source, "priority": priority.label, **asdict(account), "in_flight": account.in_flight}
            for (source, priority), account in sorted(self._accounts.items())
        ]
