"""Which of the offered media types a client accepts most (RFC 9110, 12.5)."""

import re
from collections.abc import Sequence
from typing import Final

MOST_RANGES: Final = 50
_QUALITY: Final = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)


def best(accept: str | None, offered: Sequence[str]) -> str | None:
    """Return the media type or coding of ``offered`` that the header accepts most; None where it accepts none.

    Without a header it is the first. Of equals the one that the client names first counts, then the first offered.
    Of the ranges of a header the first MOST_RANGES count.
    """
    ranges = [_weighed(each) for each in (accept or "").split(",", MOST_RANGES)[:MOST_RANGES] if each.strip()]
    if not ranges:
        return offered[0]
    places: list[tuple[float, int, int, str]] = []
    for order, name in enumerate(offered):
        # The most specific range that covers a type decides on it.
        matching = [(_specificity(text, name), n, q) for n, (text, q) in enumerate(ranges) if _covers(text, name)]
        if matching:
            _, position, quality = max(matching, key=lambda each: (each[0], -each[1]))
            places.append((quality, -position, -order, name))
    found = max(places, default=None)
    return found[-1] if found is not None and found[0] > 0 else None


def _weighed(entry: str) -> tuple[str, float]:
    name, *parameters = (part.strip() for part in entry.lower().split(";"))
    quality = next((text[2:].strip() for text in parameters if text.startswith("q=")), "1")
    return name, float(quality) if _QUALITY.fullmatch(quality) else 0.0


def _covers(text: str, name: str) -> bool:
    return text in (name, "*/*", "*") or (text.endswith("/*") and name.startswith(text[:-1]))


def _specificity(text: str, name: str) -> int:
    return 2 if text == name else int(text not in ("*/*", "*"))
