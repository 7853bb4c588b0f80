"""What an object store can be, seen through the network before it."""

from collections.abc import Callable, Mapping

from sda_platform_tests.support.cutting_proxy import CuttingProxy

Fault = Callable[[CuttingProxy], None]
STORE_FAULTS: Mapping[str, Fault] = {
    "cut off": lambda network: network.cut(for_good=True),
    "failing": lambda network: network.answer_with(500, "InternalError"),
    "overloaded": lambda network: network.answer_with(503, "SlowDown"),
    "slow": lambda network: network.delay(3.0),
}
