"""The subscriber of a replay: a local one that holds what the real subscriber held then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from sda_platform.delivery.ledger import entries_of, last_delivered, stamps
from sda_platform.delivery.outbox import DeliveryBatch
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.replay.history import History


def replay_subscriber(
    resources: Mapping[str, Any], live: Lake, replayed: History, scratch: Path
) -> Mapping[str, Subscriber]:
    """A SQLite subscriber under the name of the real one, which holds what was delivered before ``replayed``."""
    earlier = ds.field(COMMIT_SEQUENCE) < replayed.first
    before = entries_of(live, stamps(last_delivered(live, where=earlier)).values())
    stand_in = SqliteSubscriber(scratch / "subscriber.sqlite")
    stand_in.name = resources["subscriber"].name
    DeliveryBatch("before the replay", before).send(stand_in)
    return {"subscriber": stand_in}
