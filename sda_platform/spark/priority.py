"""Who waits for whom when the cores do not suffice: what is heavy, for what alerts wait for."""

import os

# A third of the share of what has not given way: enough to come to an end while the alerts pool always has work.
_LESS_URGENT = 5


def give_way() -> None:
    """Put the calling process behind its equals, from now on; doing so again changes nothing."""
    usual = os.getpriority(os.PRIO_PROCESS, os.getppid())
    if os.getpriority(os.PRIO_PROCESS, 0) < usual + _LESS_URGENT:
        os.setpriority(os.PRIO_PROCESS, 0, min(usual + _LESS_URGENT, 19))
