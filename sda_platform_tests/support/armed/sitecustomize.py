"""Arms the failpoints of each Python process that starts with this directory on its path: see `injections.armed`."""

import os
import sys
from pathlib import Path

from sda_platform_tests.support import injections


def arm_daemon() -> None:
    """Make Dagster's own crash points of a sensor's tick failpoints: ``daemon.run_created`` and the like."""
    from dagster._daemon import sensor

    from sda_platform import failpoints

    if not hasattr(sensor, "check_for_debug_crash"):
        raise RuntimeError("this Dagster marks the crash points of its sensor loop by another name")
    sensor.check_for_debug_crash = lambda _flags, key: failpoints.hit(f"daemon.{key.lower()}")


if injection_file := os.environ.get(injections.INJECTION_FILE):
    injections.arm_from(Path(injection_file))
    if any(Path(argument).name == "dagster-daemon" for argument in sys.orig_argv):
        arm_daemon()
