"""Failures of an asset's body: a transient failure is repeated with pauses, any other failure ends the run.

The run is tagged with the disposition, because sensors decide by it whether to start another run.
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from textwrap import shorten
from typing import Any, NoReturn

import dagster as dg

from sda_platform import failpoints
from sda_platform.lake.errors import Unavailable
from sda_platform.orchestration.dispositions import Disposition, disposition_of, is_of_engine
from sda_platform.orchestration.turns import turn
from sda_platform.resilience import pause_s

FAILURE_TAG = "sda/failure"
REASON_TAG = "sda/failure_reason"
# A loser plans again and wins within a second or two; a longer outage is left to a new run, which frees the pool.
_RETRIES = 5
# From this try on a loser works alone: others that write the same table wait for it.
_ALONE_FROM = 2
_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
_REASON_LENGTH = 200

Body = Callable[..., dg.MaterializeResult[Any]]


def with_retries(name: str, body: Body) -> Body:
    """Return the ``body`` of the asset ``name``: repeated after a transient failure (the loser of two writers plans
    again, see `turns`), failed for good after any other.
    """

    @wraps(body)
    def run(*args: Any, **kwargs: Any) -> dg.MaterializeResult[Any]:
        context = dg.AssetExecutionContext.get()
        place = Path(context.instance.root_directory) / "turns" / f"{name}.lock"
        try:
            with turn(place, is_alone=context.retry_number >= _ALONE_FROM):
                failpoints.hit("asset.begun", name)
                result = body(*args, **kwargs)
                failpoints.hit("asset.reported", name)
                return result
        except Exception as error:
            _repeat_or_tell(context, error)

    return run


def _repeat_or_tell(context: dg.AssetExecutionContext, error: Exception) -> NoReturn:
    disposition = disposition_of(error)
    # This run's session ended with its engine. No pool is blocked for an external system that does not answer.
    may_repeat = disposition is Disposition.TRANSIENT and not (is_of_engine(error) or isinstance(error, Unavailable))
    if may_repeat and context.retry_number < _RETRIES:
        seed = f"{context.run.run_id}/{context.asset_key.to_user_string()}"
        wait_s = pause_s(context.retry_number + 1, base_s=_PAUSE_S, cap_s=_LONGEST_PAUSE_S, seed=seed)
        raise dg.RetryRequested(_RETRIES, wait_s) from error
    reason = f"{type(error).__name__}: {error}"
    context.instance.add_run_tags(
        context.run.run_id,
        {FAILURE_TAG: disposition.value, REASON_TAG: shorten(reason, _REASON_LENGTH, placeholder=" …")},
    )
    raise dg.Failure(
        f"{disposition.value}: {reason}", metadata={"failure": disposition.value}, allow_retries=False
    ) from error
