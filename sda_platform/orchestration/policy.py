"""Policy: what holds for every asset of a group, applied once to all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import dagster as dg


@dataclass(frozen=True)
class GroupPolicy:
    """Who owns a group's assets, and how fresh Dagster expects them: hours after which it warns and fails."""

    owner: str
    warn_h: float
    fail_h: float

    @property
    def freshness(self) -> dg.FreshnessPolicy:
        """The freshness policy of the group's tables."""
        return dg.FreshnessPolicy.time_window(
            fail_window=timedelta(hours=self.fail_h), warn_window=timedelta(hours=self.warn_h)
        )


def with_policy(spec: dg.AssetSpec, policies: Mapping[str, GroupPolicy]) -> dg.AssetSpec:
    """``spec`` with owners, kinds and tags of its group; a table also with the group's freshness."""
    policy = policies[spec.group_name or ""]
    is_table = not spec.kinds
    mapped = spec.replace_attributes(
        owners=[policy.owner],
        kinds={"spark", "deltalake"} if is_table else spec.kinds,
        tags={**spec.tags, "domain": "space-domain-awareness", "stage": spec.group_name or ""},
    )
    return dg.apply_freshness_policy(mapped, policy.freshness) if is_table else mapped
