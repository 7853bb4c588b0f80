"""T1 of the deliveries: real processes and real subscribers, without an engine; kill -9 at each step."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.sql_subscriber import SqlSubscriber
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.support.delivery_rounds import DELIVERY_POINTS, IN_THE_DATABASE, empty, killed_delivery
from sda_platform_tests.support.postgres_server import postgres_binaries, running_postgres
from sda_platform_tests.support.webhook_receiver import receiving

Case = tuple[str, tuple[str, int]]


def cases() -> list[Case]:
    """``(kind of subscriber, step at which the delivering process is killed)``."""
    kinds = ["sqlite", "webhook", *(["postgres"] if postgres_binaries() else [])]
    steps = [(kind, step) for kind in kinds for step in DELIVERY_POINTS]
    return [case for case in steps if case != ("webhook", IN_THE_DATABASE)]


def run(repeats: int, seed: int) -> Report:
    """Try every case ``repeats`` times, in an order that follows from ``seed``."""
    tried = cases() * repeats
    random.Random(seed).shuffle(tried)
    failures, seconds, reached = [], [], set()
    with tempfile.TemporaryDirectory(prefix="sda-deliveries-") as directory, ExitStack() as servers:
        stores = _Stores(Path(directory), servers)
        for number, (kind, step) in enumerate(tried):
            root = Path(directory) / str(number)
            with stores.of(kind, root) as (setting, store):
                problems, took_s = killed_delivery(root, setting, store, step)
            failures += [f"{kind} killed at {step}, seed {seed}: {problem}" for problem in problems]
            seconds.append(took_s)
            reached |= set() if any("not reached" in problem for problem in problems) else {step[0]}
    missed = {point for point, _ in DELIVERY_POINTS} - reached
    return Report(
        "t1, deliveries", seed, len(tried), frozenset(reached), frozenset(missed), tuple(failures), tuple(seconds)
    )


class _Stores:
    """Hands each case an empty subscriber; there is one Postgres server for all."""

    def __init__(self, directory: Path, servers: ExitStack) -> None:
        binaries = postgres_binaries()
        directory.chmod(0o755)  # the server's own user has to get through
        (directory / "postgres").mkdir()
        started = servers.enter_context(running_postgres(binaries, directory / "postgres")) if binaries else None
        self._postgres = PostgresSubscriber(started.url) if started else None
        self._postgres_url = started.url if started else ""

    @contextmanager
    def of(self, kind: str, root: Path) -> Iterator[tuple[str, SqlSubscriber]]:
        """``(setting, where it keeps what it got)``."""
        sqlite = SqliteSubscriber(root / "received.sqlite")
        if kind == "webhook":
            with receiving(sqlite) as receiver:
                yield receiver.url, sqlite
        elif kind == "postgres" and self._postgres:
            empty(self._postgres)
            yield self._postgres_url, self._postgres
        else:
            yield str(sqlite.path), sqlite
