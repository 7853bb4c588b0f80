"""The subscriber of a replay: a local one that holds what the real subscriber held then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.inheritance import first_sequence
from sda_platform.delivery.outbox import DeliveryBatch, entries
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.lake.lake import Lake
from sda_platform.replay.history import History


def replay_subscriber(
    resources: Mapping[str, Any], live: Lake, replayed: History, scratch: Path
) -> Mapping[str, Subscriber]:
    """A SQLite subscriber under the name of the real one, which holds what was delivered before ``replayed``."""
    first = replayed.commits[0].manifest
    window = first.window(CONJUNCTION_ALERTS.name)
    before = live.log(CONJUNCTION_ALERTS).rows_of((0, window.after_sequence if window else 0))
    stand_in = SqliteSubscriber(scratch / "subscriber.sqlite")
    stand_in.name = resources["subscriber"].name
    DeliveryBatch("before the replay", entries(before, first_sequence(first))).send(stand_in)
    return {"subscriber": stand_in}
