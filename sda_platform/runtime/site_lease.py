"""One of several sites works on a lake in an object store; the others stand by (`SDA_ETCD`).

The working site has the lease of the lake. A standby has an engine and definitions ready, which do nothing by
themselves. It takes the lease once that has run out, and starts the rest then. A site that can no longer renew it stops
its platform and is a standby again. The lease keeps two sites from doing the same work. It does not carry exactly-once:
for some seconds two sites may work. The conditional puts of the store and the keys of deliveries then exclude a second
effect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sda_platform.lake.errors import Unavailable
from sda_platform.lake.object_store import is_object_store

if TYPE_CHECKING:
    from sda_platform.ground.uplink_lease import Leases
    from sda_platform.orchestration.leases import Lease
    from sda_platform.settings import Settings

TTL_S: Final = 15
"""Length of the lease: with the start of a platform, a standby works within a minute after a site was lost."""
_PAUSE_S: Final = 1.0


@dataclass(frozen=True)
class SiteLease:
    """The lease ``name``, of which ``leases`` has one holder."""

    leases: Leases
    name: str

    def await_held(self, say: Callable[[str], None], pause: Callable[[], object]) -> Lease:
        """Return the lease once it is this site's; ``say`` gets what it waits for, each reason once.

        ``pause`` is called between two looks.
        """
        said = ""
        while True:
            try:
                return self.leases.acquire(self.name, TTL_S)
            except Unavailable as reason:
                if str(reason) != said:
                    said = str(reason)
                    say(f"standing by: {said}")
            pause()

    @contextmanager
    def kept(self, lease: Lease, lost: Callable[[], None]) -> Iterator[None]:
        """Renew ``lease`` meanwhile, and release it afterwards; ``lost`` is called once it has run out."""
        done = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(lease, done, lost), name="site-lease", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            done.set()
            keeper.join()
            if self.leases.is_held(lease):
                self.leases.release(lease)

    def _keep(self, lease: Lease, done: threading.Event, lost: Callable[[], None]) -> None:
        while not done.wait(_PAUSE_S):
            try:
                self.leases.renew(lease)
            except Unavailable:  # also a lease that is lost
                if not self.leases.is_held(lease):
                    lost()
                    return


def site_lease(settings: Settings) -> SiteLease | None:
    """Return the lease of the lake of ``settings``; None where no other site can reach that lake."""
    if not settings.etcd or not is_object_store(settings.lake_uri):
        return None
    from sda_platform.orchestration.leases import EtcdLeases

    leases = EtcdLeases(settings.etcd, f"site {settings.site}", timeout_s=TTL_S / 5)
    return SiteLease(leases, f"platform {settings.lake_uri}")
