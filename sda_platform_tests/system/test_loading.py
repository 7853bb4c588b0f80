"""Loading the definitions, in a process that has loaded nothing yet."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_loading_starts_no_jvm_opens_nothing_and_warns_of_nothing(tmp_path: Path) -> None:
    script = (
        "import subprocess, warnings\n"
        "start, started = subprocess.Popen.__init__, []\n"
        "def watched(self, command, *args, **options):\n"
        "    started.append(str(command))\n"
        "    start(self, command, *args, **options)\n"
        "subprocess.Popen.__init__ = watched\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    import sda_platform.definitions as d\n"
        "ours = [str(w) for w in told if 'sda_platform' in w.filename or 'dagster' in str(w.category).lower()\n"
        "        or 'Dagster' in str(w.message)]\n"
        "assert not ours, ours\n"
        "assert not [c for c in started if 'java' in c or 'spark' in c], started\n"
        "assert d.defs.resources\n"
    )
    home = tmp_path / "home"
    environment = {**os.environ, "SDA_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [], "loading wrote something"
