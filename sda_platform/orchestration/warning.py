"""The outcome of a check that warns: red where it found problems, which its description lists."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from sda_platform.orchestration.materialization import outcome_text


def warning(
    problems: Sequence[str],
    metadata: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    asset_key: dg.AssetKey | None = None,
) -> dg.AssetCheckResult:
    """A warning with these ``problems``, cut at a word after 1,000 characters; passed without any.

    ``name`` and ``asset_key``: the check, where the asset itself evaluates it.
    """
    return dg.AssetCheckResult(
        asset_key=asset_key,
        check_name=name,
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN,
        description=outcome_text("; ".join(problems)),
        metadata=dict(metadata or {}),
    )
