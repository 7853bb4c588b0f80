"""What another user of this machine can do, tried in a child process under another user id."""

import os
from collections.abc import Callable

import pytest

ANOTHER = 65_534
"""The id of that user, and of the user's group."""


def as_another_user(attempt: Callable[[], object]) -> str:
    """What became of ``attempt`` by another user: "done", or the name of the error that stopped it.

    Skips the test where this process may not take another user's id.
    """
    if os.getuid():
        pytest.skip("only root may take the id of another user")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(ANOTHER)
            os.setuid(ANOTHER)
            attempt()
            found = "done"
        except BaseException as error:  # whatever it is, this process ends here
            found = type(error).__name__
        os.write(writing, found.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found
