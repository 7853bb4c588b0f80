"""The files in ``names/``, each of which records that bytes were consumed under its name.

Nearly all are empty. On a local file system these are links to one empty file: a link costs a fraction of a new file.
Nothing may therefore write to a mark that exists. Earlier versions made each mark a file of its own, which means the
same.
"""

import errno
import os
from contextlib import suppress

from upath import UPath

from sda_platform.lake.durable import WITHOUT_LINKS
from sda_platform.landing.listing import is_local

# What the file system answers where the empty file is missing, is elsewhere, or can have no more links.
_NO_LINK = WITHOUT_LINKS | {errno.ENOENT, errno.EXDEV}


def create_mark(mark: tuple[UPath, str], text: str, empty_file: UPath) -> None:
    """Create the file of this directory and name with ``text`` where there is none; an existing one stays as it is.

    ``empty_file`` is what empty local marks are links to. It is made with the first of them, and anew when the file
    system allows it no more links.
    """
    directory, name = mark
    if not is_local(directory):
        if not (directory / name).exists():
            (directory / name).write_text(text)
        return
    with suppress(FileExistsError):
        if not text and _is_linked(f"{empty_file}", f"{directory}/{name}"):
            return
        with (directory / name).open("x") as file:
            file.write(text)
        if not text:
            empty_file.unlink(missing_ok=True)
            _is_linked(f"{directory}/{name}", f"{empty_file}")


def _is_linked(source: str, target: str) -> bool:
    """Return whether ``target`` has become a name of ``source``; False where it cannot. Raises FileExistsError."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True
