"""Files that are replaced whole: a reader sees the earlier content or the new one, also after a power loss."""

import os
import stat
import uuid
from pathlib import Path


def replace_content(path: Path, content: str | bytes) -> None:
    """Write ``content``, a text in UTF-8, as the file at ``path``, whose mode stays if it exists. Raises OSError.

    Of a link the file to which it leads is replaced.
    """
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")  # in containers, process ids are equal
    try:
        with partial.open("wb") as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(content if isinstance(content, bytes) else content.encode())
            file.flush()
            os.fsync(file.fileno())  # before it takes the name: a power loss would leave an empty file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
