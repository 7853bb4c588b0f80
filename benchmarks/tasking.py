"""All figures of tasking and of membership, one part after the other.

    python benchmarks/tasking.py [passes] [schedule] [membership]

Each part is a script of its own with further options: `pass_windows.py`, `schedule.py` and `membership.py`.
Fails where a part misses a bound or its answers differ from the peer's.
"""

import argparse
import sys

import membership
import pass_windows
import schedule

PARTS = {
    "passes": pass_windows.main,
    "schedule": schedule.main,
    "membership": membership.main,
}


def main() -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"of {', '.join(PARTS)}")
    chosen = parser.parse_args().parts or PARTS
    return max(PARTS[name]([]) for name in chosen)


if __name__ == "__main__":
    sys.exit(main())
