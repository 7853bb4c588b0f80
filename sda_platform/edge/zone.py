"""One landing zone's way from received records to sealed segments: choose the edge, account, seal."""

from collections.abc import Mapping

from sda_platform.edge.batch import ReceivedBatch
from sda_platform.edge.channel import Channel, Overdue
from sda_platform.edge.ledger import Account, Ledger
from sda_platform.edge.pressure import Pressure
from sda_platform.edge.priority import Priority
from sda_platform.edge.topology import Topology


class ZoneEntry:
    """Where sources hand over what they received for one zone."""

    def __init__(self, zone: str, topology: Topology, ledger: Ledger) -> None:
        self.zone = zone
        self._lanes = topology.lanes(zone)
        self._ledger = ledger
        self.pressure = Pressure([self._lanes[Priority.HIGH], self._lanes[Priority.LOW]])

    @property
    def lanes(self) -> Mapping[Priority, Channel[ReceivedBatch]]:
        """The zone's channels."""
        return self._lanes

    async def hand_over(self, batch: ReceivedBatch) -> bool:
        """Take ``batch``, or wait where its edge blocks; False: it was dropped. Its receipt is settled with its seal.

        Deferred is what does not fit on an edge that does not block, and low priority while the zone is saturated.
        """
        if not batch.records:
            return True
        account = self._ledger.account(batch.source, batch.priority)
        account.received += batch.records
        batch.receipt.expect()
        if batch.priority is Priority.LOW:
            is_low = not self.pressure.saturated() and self._offer(batch, Priority.LOW)
            return is_low or self._defer(batch, account)
        try:
            kind = batch.priority.label
            await self._lanes[batch.priority].put(batch, batch.weight, records=batch.records, kind=kind)
        except Overdue:
            return self._defer(batch, account)
        except BaseException:  # cancelled while it waited, or closed: the records are nowhere now
            self._drop(batch, account)
            raise
        return True

    def _defer(self, batch: ReceivedBatch, account: Account) -> bool:
        is_taken = self._offer(batch, Priority.DEFERRED)
        if is_taken:
            account.deferred += batch.records
        else:
            self._drop(batch, account)
        return is_taken

    def _offer(self, batch: ReceivedBatch, lane: Priority) -> bool:
        kind = batch.priority.label
        return self._lanes[lane].offer(batch, batch.weight, records=batch.records, kind=kind)

    @staticmethod
    def _drop(batch: ReceivedBatch, account: Account) -> None:
        account.dropped += batch.records
        batch.receipt.settle(batch.records)

    def hurry(self) -> None:
        """Have everything sealed as soon as it comes: an end waits for acknowledgements."""
        for channel in self._lanes.values():
            channel.hurry()

    def close(self) -> None:
        """Take nothing more; what was taken is still sealed."""
        for channel in self._lanes.values():
            channel.close()
