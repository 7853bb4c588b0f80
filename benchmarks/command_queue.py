"""What a look at the queue of an uplink costs after a million commands, and what it holds of them.

    python benchmarks/command_queue.py [--done 1000000]

A look is what an uplink does each 50 ms: what has expired, and what is to be sent. It is compared with one of a queue
without a past; both give the same commands.
"""

import argparse
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np

from sda_platform.ground.commands import ACCEPTED, ACKNOWLEDGED, Command, CommandQueue, Transition

_CAPACITY, _WAITING, _LOOKS = 256, 200, 400
_MOST_MS = 5.0


def main() -> None:
    """Print both, and fail above the bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--done", type=int, default=1_000_000, help="commands of the past")
    done = parser.parse_args().done
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    old = CommandQueue(_CAPACITY, 32, past(done))
    held_mb = (tracemalloc.get_traced_memory()[0] - before) / 1e6
    tracemalloc.stop()
    queues = {f"after {done:,} commands": old, "without a past": CommandQueue(_CAPACITY, 32)}
    for queue in queues.values():
        for number in range(_WAITING):
            queue.push(Command(f"new-{number}", "HOUSEKEEPING", number, 10**18))
    found = [queue.pending_by_urgency(0)[1] for queue in queues.values()]
    assert found[0] == found[1] and len(found[0]) == _WAITING
    times_ms: dict[str, list[float]] = {name: [] for name in queues}
    for _ in range(_LOOKS):
        for name, queue in queues.items():
            began = time.perf_counter()
            queue.pending_by_urgency(0)
            times_ms[name].append(1000 * (time.perf_counter() - began))
    for name, times in times_ms.items():
        print(f"a look {name}: median {np.median(times):.3f} ms, slowest {max(times):.2f} ms")
    print(f"memory of the past: {held_mb:.0f} MB")
    if (slow := float(np.quantile(times_ms[next(iter(queues))], 0.99))) > _MOST_MS:
        raise SystemExit(f"99 % of the looks take {slow:.1f} ms, above {_MOST_MS:g} ms")


def past(number: int) -> Iterator[Transition]:
    """Transitions of commands that are done, each id of a UUID's length."""
    for place in range(number):
        command = Command(f"{place:036d}", "HOUSEKEEPING", place, 10**18)
        yield Transition(2 * place + 1, ACCEPTED, command)
        yield Transition(2 * place + 2, ACKNOWLEDGED, command)


if __name__ == "__main__":
    main()
