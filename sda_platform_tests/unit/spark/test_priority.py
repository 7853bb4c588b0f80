"""Who gives way to whom."""

import os
import subprocess
import sys


def test_a_process_gives_way_once_however_often_it_says_so() -> None:
    told = (
        "import os; from sda_platform.spark.priority import give_way; usual = os.getpriority(os.PRIO_PROCESS, 0)\n"
        "for _ in range(3): give_way(); print(os.getpriority(os.PRIO_PROCESS, 0) - usual)"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    lowest = 19  # where these tests run at a low priority themselves, less than 5 is left
    assert done.stdout.split() == [str(min(5, lowest - os.getpriority(os.PRIO_PROCESS, 0)))] * 3
