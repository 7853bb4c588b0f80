"""`sda lake reprocess`: select dead letters, list them, and land their records again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sda_platform.cli.listing import number, words
from sda_platform.clock import iso
from sda_platform.dead_letters.rejected import DeadLetterRecord
from sda_platform.dead_letters.reprocess_job import Reprocessing
from sda_platform.dead_letters.reprocessing import Return

_EXAMPLES = 3


COLUMNS: Final = (
    number("dead letters", lambda group: f"{group['letters']:,}"),
    *(words(name, name) for name in ("kind", "stage", "source")),
    words("rejected", "rejected_utc"),
    words("example", lambda group: group["example"][:100]),
)


def groups(returns: Sequence[Return]) -> list[dict[str, Any]]:
    """Write the dead letters to reprocess by kind, stage and source, most first, each with an example."""
    letters = [letter for each in returns for letter in each.letters]
    counts = Counter(map(_group, letters))
    examples = {_group(letter): letter for letter in reversed(letters)}
    return [
        {
            "letters": count,
            **dict(zip(("kind", "stage", "source"), group, strict=True)),
            "rejected_utc": iso(examples[group].rejected_time_ns),
            "example": examples[group].error,
        }
        for group, count in counts.most_common()
    ]


def verdict(found: Reprocessing) -> Iterator[str]:
    """Write what became of the dead letters, and why some stay, with examples."""
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
