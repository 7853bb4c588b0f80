"""Deliveries made again for a replay: to a subscriber of our own, which knows what the real one knew then."""

from pathlib import Path

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.inheritance import first_sequence
from sda_platform.delivery.outbox import Batch, entries
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.lake.checkpoint import Checkpoint
from sda_platform.lake.lake import Lake


def rehearsal(path: Path, real: Subscriber, live: Lake, first: Checkpoint) -> Subscriber:
    """A SQLite file under the name of ``real``, which has what was delivered before the commit ``first``."""
    window = first.window(CONJUNCTION_ALERTS.name)
    before = live.log(CONJUNCTION_ALERTS).rows_of((0, window.after_sequence if window else 0))
    stand_in = SqliteSubscriber(path)
    stand_in.name = real.name
    Batch("before the replay", entries(before, first_sequence(first))).send(stand_in)
    return stand_in
