"""Fencing: a table that was written under a lease takes no commit of a holder whose lease another one has followed.

The token of a lease rises with every grant. A commit carries it in its manifest, and a plan with a lower token than the
newest commit's is refused. A commit that lands between plan and write takes the plan's sequence, so that the write is
refused as well (`CommitConflict`). The new plan meets the higher token.
"""

from dataclasses import replace

from sda_platform.lake.errors import StaleToken
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
