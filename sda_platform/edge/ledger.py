"""The ledger: what became of every record, by source and priority, exactly.

    received = sealed + dropped + in flight

``deferred`` is the part of ``sealed`` that took the way round the burst. A record's priority is the one that it was
received with, also if it was deferred.
"""

from collections import defaultdict
from dataclasses import asdict, dataclass

from sda_platform.edge.priority import Priority


@dataclass
class Account:
    """Counts of records of one source and priority since the start."""

    received: int = 0
    sealed: int = 0
    deferred: int = 0
    dropped: int = 0

    @property
    def in_flight(self) -> int:
        """Records that are in memory."""
        return self.received - self.sealed - self.dropped


class Ledger:
    """The accounts of a collector."""

    def __init__(self) -> None:
        self._accounts: defaultdict[tuple[str, Priority], Account] = defaultdict(Account)

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
