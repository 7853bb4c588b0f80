"""Reprocessing of dead letters as a whole, for the command `sda lake reprocess` and the job `reprocess` of the UI."""

from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from pydantic import Field

from sda_platform import audit_log
from sda_platform.clock import parse_iso_ns
from sda_platform.dead_letters.rejected import read_dead_letters
from sda_platform.dead_letters.reprocessing import (
    DeadLetterFilter,
    ReprocessReport,
    Return,
    Skipped,
    put_back,
    returns_of,
)
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.resources import LakeResource, LandingResource


@dataclass(frozen=True)
class Reprocessing:
    """What was chosen, and (after a run that was not dry) what became of it. ``unknown``: letters of a newer layout
    among those of the chosen kinds and stages."""

    going_back: tuple[Return, ...]
    skipped: tuple[Skipped, ...]
    unknown: int
    report: ReprocessReport | None

    @property
    def summary(self) -> str:
        """Summarize in one line what became of the dead letters."""
        if self.report is None:
            letters = sum(len(each.letters) for each in self.going_back)
            return f"dry run: {letters:,} dead letters would return as {len(self.going_back):,} segments"
        return (
            f"{self.report.reprocessed:,} reprocessed, {len(self.skipped):,} skipped, "
            f"{self.report.had_already:,} had returned before"
        )


def reprocess_dead_letters(
    lake: Lake, landing_root: str, chosen: DeadLetterFilter, *, into: str | None = None, dry_run: bool = False
) -> Reprocessing:
    """Put the chosen dead letters back into the zones below ``landing_root``, or below ``into``."""
    letters, unknown = read_dead_letters(lake.log(DEAD_LETTERS).rows(where=chosen.where))
    returns, skipped = returns_of((letter for letter in letters if chosen.takes(letter)), landing_root)
    report = None if dry_run else put_back(returns, skipped, into or landing_root)
    return Reprocessing(tuple(returns), report.skipped if report else tuple(skipped), unknown, report)


class ReprocessConfig(dg.Config):
    """The selection of dead letters in the launchpad; empty lists and texts select all."""

    kinds: list[str] = Field(default_factory=list)
    stages: list[str] = Field(default_factory=list)
    sources: list[str] = Field(default_factory=list)
    since: str = ""
    until: str = ""
    dry_run: bool = True

    def chosen(self) -> DeadLetterFilter:
        """Return the filter. Raises ValueError for a text that is no ISO 8601 instant."""
        return DeadLetterFilter(
            frozenset(self.kinds),
            frozenset(self.stages),
            frozenset(self.sources),
            since_ns=parse_iso_ns(self.since) if self.since else None,
            until_ns=parse_iso_ns(self.until) if self.until else None,
        )


@dg.op(description="Returns the chosen dead letters to their landing zones; a dry run only counts them.")
def return_dead_letters(
    context: dg.OpExecutionContext, config: ReprocessConfig, lake: LakeResource, landing: LandingResource
) -> None:
    """Reprocess as `sda lake reprocess` does, and leave an audit event."""
    found = reprocess_dead_letters(lake.open(), landing.root, config.chosen(), dry_run=config.dry_run)
    context.log.info(found.summary)
    for skipped in found.skipped[:20]:
        context.log.warning(f"{skipped.letter.segment_name} record {skipped.letter.record_number}: {skipped.reason}")
    context.add_output_metadata({"summary": found.summary})
    if found.report:
        by = f"run {context.run_id}"
        audit_log.record(Path(lake.home), "reprocess", config.model_dump(), found.summary, by=by)


@dg.job(
    name="reprocess",
    executor_def=dg.in_process_executor,
    description="Returns dead letters to their landing zones. The launchpad selects them; a dry run by default.",
)
def reprocess() -> None:
    """Reprocess chosen dead letters."""
    return_dead_letters()
