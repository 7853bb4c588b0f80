"""`sda reprocess` on the command line: select dead letters, list them, and land their records again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table as Grid
from rich.text import Text

from sda_platform.clock import iso
from sda_platform.dead_letters.rejected import DeadLetterRecord, read_dead_letters
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

_EXAMPLES = 3


@dataclass(frozen=True)
class Reprocessing:
    """What was chosen, and (after a run that was not dry) what became of it. ``unknown``: letters of a newer layout
    among those of the chosen kinds and stages."""

    going_back: tuple[Return, ...]
    skipped: tuple[Skipped, ...]
    unknown: int
    report: ReprocessReport | None


def reprocess_dead_letters(
    lake: Lake, landing_root: str, chosen: DeadLetterFilter, *, into: str | None = None, dry_run: bool = False
) -> Reprocessing:
    """Bring the chosen letters back to the zones below ``landing_root``, or to those below ``into``."""
    letters, unknown = read_dead_letters(lake.log(DEAD_LETTERS).rows(where=chosen.where))
    returns, skipped = returns_of((letter for letter in letters if chosen.takes(letter)), landing_root)
    report = None if dry_run else put_back(returns, skipped, into or landing_root)
    return Reprocessing(tuple(returns), report.skipped if report else tuple(skipped), unknown, report)


def dead_letter_grid(returns: Sequence[Return]) -> Grid:
    """What goes back, by kind, stage and source, most first, each with an example."""
    letters = [letter for each in returns for letter in each.letters]
    counts = Counter(map(_group, letters))
    examples = {_group(letter): letter for letter in reversed(letters)}
    grid = Grid("dead letters", "kind", "stage", "source", "rejected", "example", box=None)
    grid.columns[0].justify = "right"
    for group, count in counts.most_common():
        example = examples[group]
        grid.add_row(f"{count:,}", *group, iso(example.rejected_time_ns), Text(example.error[:100]))
    return grid


def verdict(found: Reprocessing) -> Iterator[str]:
    """What became of the letters, line by line; why some stay, with examples."""
    letters = sum(len(each.letters) for each in found.going_back)
    if found.report is None:
        yield f"dry run: {letters:,} dead letters would return as {len(found.going_back):,} segments"
    else:
        yield (
            f"{found.report.reprocessed:,} reprocessed, {len(found.skipped):,} skipped, "
            f"{found.report.had_already:,} had returned before"
        )
    for reason, count in Counter(each.reason for each in found.skipped).most_common():
        names = [_name(each.letter) for each in found.skipped if each.reason == reason]
        yield f"skipped {count:,}: {reason} ({', '.join(names[:_EXAMPLES])}{', …' if count > _EXAMPLES else ''})"
    if found.unknown:
        yield f"skipped {found.unknown:,}: a newer platform wrote them; update this one first"


def _group(letter: DeadLetterRecord) -> tuple[str, str, str]:
    return letter.error_kind, letter.stage, letter.source


def _name(letter: DeadLetterRecord) -> str:
    return f"{letter.feed}/{letter.segment_name} record {letter.record_number}"
