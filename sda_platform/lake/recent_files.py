"""The data files that hold what a table's last commits wrote, by the texts of these commits: the table is not opened.

To open a table takes the longer the more files it has (decision 28).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from sda_platform.lake import delta_log
from sda_platform.lake.commit_texts import KEPT_TEXTS
from sda_platform.lake.table import COMMIT_SEQUENCE

# Texts of more versions would be read anew each time.
_MOST_VERSIONS: Final = KEPT_TEXTS


def files_with(app_id: str, sequences: tuple[int, int], texts: Iterable[tuple[int, str]]) -> dict[str, int] | None:
    """Return names and sizes of the live files that may hold rows of the commits ``(after, upto]``.

    ``texts`` are those of the versions in the log, newest first. None where they do not show it: the commit is too
    long ago, the log was cut or a text is not whole, or rows were deleted without a new file.
    """
    after, _ = sequences
    removed: set[str] = set()
    found: dict[str, int] = {}
    for count, (version, text) in enumerate(texts):
        try:
            last = delta_log.sequence_in(text, app_id)
            if last is not None and last <= after:
                return found
            if not text.strip() or count == _MOST_VERSIONS or (last or 0) - after > _MOST_VERSIONS - count:
                return None
            for kind, action in delta_log.actions(text, "add", "remove"):
                if kind == "remove":
                    removed.add(action["path"])
                elif action.get("deletionVector"):
                    return None
                elif action["path"] not in removed and _may_hold(action, sequences):
                    found[unquote(action["path"])] = int(action["size"])
        except (ValueError, KeyError):
            return None
        if version == 0:
            return found
    return None


def _may_hold(add: Mapping[str, Any], sequences: tuple[int, int]) -> bool:
    stats = json.loads(add.get("stats") or "{}")
    least, most = (stats.get(bound, {}).get(COMMIT_SEQUENCE) for bound in ("minValues", "maxValues"))
    return (least is None or least <= sequences[1]) and (most is None or most > sequences[0])
