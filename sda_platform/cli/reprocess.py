"""`sda reprocess` on the command line: select dead letters, list them, and land their records again."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table as Grid
from rich.text import Text

from sda_platform.clock import iso
from sda_platform.dead_letters.rejected import DeadLetterRecord
from sda_platform.dead_letters.reprocess_job import Reprocessing
from sda_platform.dead_letters.reprocessing import Return

_EXAMPLES = 3


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
    yield found.summary
    for reason, count in Counter(each.reason for each in found.skipped).most_common():
        names = [_name(each.letter) for each in found.skipped if each.reason == reason]
        yield f"skipped {count:,}: {reason} ({', '.join(names[:_EXAMPLES])}{', …' if count > _EXAMPLES else ''})"
    if found.unknown:
        yield f"skipped {found.unknown:,}: a newer platform wrote them; update this one first"


def _group(letter: DeadLetterRecord) -> tuple[str, str, str]:
    return letter.error_kind, letter.stage, letter.source


def _name(letter: DeadLetterRecord) -> str:
    return f"{letter.feed}/{letter.segment_name} record {letter.record_number}"
