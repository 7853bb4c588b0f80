"""Fencing: a table that was written under a lease takes no commit of a holder whose lease another one has followed.

The token of a lease rises with every grant. A commit carries it in its manifest, and a plan with a lower token than the
newest commit's is refused. A commit that lands between plan and write takes the plan's sequence, so that the write is
refused as well (`CommitConflict`). The new plan meets the higher token. Before each write the holder looks at its lease
again: one that was stopped between plan and write does not write, although no other holder has committed yet.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sda_platform.lake.commit import CommitEngine, Mode
from sda_platform.lake.errors import StaleToken
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan


def with_token(plan: Plan, token: int | None) -> Plan:
    """``plan`` under the lease of ``token``; None: it is made without a lease.

    Raises StaleToken where the newest commit carries a higher token, or any while the plan has none.
    """
    highest = plan.previous.fencing_token if plan.previous else None
    if highest is not None and (token is None or token < highest):
        mine = "no lease" if token is None else f"the lease with token {token}"
        raise StaleToken(
            f"{plan.table.name}: this run has {mine}, but its newest commit was made under token {highest}: "
            "another holder has taken over, and this one must not write"
            + (" (set SDA_ETCD, as for the platform that wrote it)" if token is None else "")
        )
    return replace(plan, fencing_token=token)


def while_held(engine: CommitEngine, require_held: Callable[[], None]) -> CommitEngine:
    """Return ``engine`` with a look before each write: nothing is written where ``require_held`` raises."""

    def prepared(
        log: TableLog, plan: Plan, rows: Any, mode: Mode, where: str | None = None, /
    ) -> Callable[[CommitManifest], None]:
        write = engine(log, plan, rows, mode, where)

        def checked(manifest: CommitManifest) -> None:
            require_held()
            write(manifest)

        return checked

    return prepared
