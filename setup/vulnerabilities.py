"""Check the lock against known vulnerabilities: ``python setup/vulnerabilities.py``; exit code 1 where one is known.

``deploy/accepted-vulnerabilities.txt`` lists those that are accepted for a while, each with a last day and a reason:

    GHSA-xxxx-xxxx-xxxx 2027-01-31 only in a function that is not used

After that day the check fails again. Stdlib only; pip-audit is fetched by uv.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
ACCEPTED = ROOT / "deploy/accepted-vulnerabilities.txt"
_LINE = re.compile(r"(?P<id>(?:GHSA|PYSEC|CVE)-[\w-]+) (?P<until>\d{4}-\d\d-\d\d) (?P<reason>\S.*)")
_PIP_AUDIT = (
    "tool",
    "run",
    "--from",
    "pip-audit==2.10.1",
    "pip-audit",
    "--strict",
    "--disable-pip",
    "--require-hashes",
)


def accepted(text: str, today: date) -> Iterator[str]:
    """The ids in ``text`` that are accepted ``today``. Raises ValueError for an entry that is none, or over."""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"{line!r}: write an id, the last day (YYYY-MM-DD) and the reason")
        if date.fromisoformat(found["until"]) < today:
            raise ValueError(f"{found['id']} was accepted until {found['until']}: update the package, or decide again")
        yield found["id"]


def main() -> int:
    """Run pip-audit over the lock."""
    try:
        ids = list(accepted(ACCEPTED.read_text(), datetime.now(UTC).date()))
    except ValueError as error:
        sys.stderr.write(f"{ACCEPTED}: {error}\n")
        return 1
    ignoring = [f"--ignore-vuln={each}" for each in ids]
    lock = f"--requirement={ROOT / 'requirements.lock'}"
    return subprocess.run([str(ROOT / ".venv/bin/uv"), *_PIP_AUDIT, lock, *ignoring], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
