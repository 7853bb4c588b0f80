"""What is wrong with the servers of the station state: their lag is visible and bounded, as a check and as a vital."""

from collections.abc import Sequence

import dagster as dg

from sda_platform.ground.promotion import ReplicaStatus, newest_leaders
from sda_platform.ground.station_state import MOST_LAG_S, StationState
from sda_platform.ground.tables import GROUND_COMMANDS
from sda_platform.orchestration.warning import warning

_UNKNOWN_LAG_S = 1e9


def replica_checks(urls: Sequence[str]) -> list[dg.AssetChecksDefinition]:
    """Return the check of the servers ``urls``; none where no station state is configured."""
    return [_follower_check(urls)] if urls else []


def read_problems(urls: Sequence[str], *, timeout_s: float, most_lag_s: float) -> list[str]:
    """Ask the servers ``urls``, and list their problems; none where no station state is configured."""
    return problems(len(urls), _statuses(StationState(urls, timeout_s=timeout_s)), most_lag_s) if urls else []


def problems(servers: int, found: Sequence[ReplicaStatus], most_lag_s: float = MOST_LAG_S) -> list[str]:
    """List the problems of so many servers' answers: silent ones, no leader, and followers that are late."""
    silent = servers - len(found)
    leading = [each for each in found if each.is_leader]
    newest = newest_leaders(found)
    late = [each for each in found if each.lag_s > most_lag_s]
    return [
        *([f"{silent} of {servers} servers do not answer"] if silent else []),
        *([] if leading else ["no server leads"]),
        *(f"{each.name} leads the older generation {each.generation}" for each in leading if each not in newest),
        *(f"{each.name} leads generation {each.generation} beside {newest[0].name}" for each in newest[1:]),
        *(f"{each.name} is {each.lag_s:.1f} s behind ({each.lag_bytes:,} bytes)" for each in late),
    ]


def _statuses(state: StationState) -> Sequence[ReplicaStatus]:
    try:
        return state.statuses()
    finally:
        state.close()


def _follower_check(urls: Sequence[str]) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=GROUND_COMMANDS.name,
        description=f"All servers of the station state answer, one leads, and no follower is {MOST_LAG_S:.0f} s late.",
    )
    def replicas_follow() -> dg.AssetCheckResult:
        found = _statuses(StationState(urls))
        lags = {f"{each.name}_lag_s": min(each.lag_s, _UNKNOWN_LAG_S) for each in found}
        return warning(
            problems(len(urls), found), lags | {f"{each.name}_generation": each.generation for each in found}
        )

    return replicas_follow
