"""Running the platform in the foreground: what `sda up` and `sda demo` share."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.text import Text

from sda_platform.delivery.configured import subscriber_of
from sda_platform.observability.vitals.watch import Receivers
from sda_platform.runtime.platform_home import RETENTION
from sda_platform.runtime.services import Addresses
from sda_platform.runtime.setting_files import require_usable_files
from sda_platform.runtime.site_lease import SiteLease, site_lease
from sda_platform.runtime.supervisor import STOPPING, Admission, Platform
from sda_platform.settings import Settings


def progress_printer(console: Console) -> Callable[[str], None]:
    """Lines with the seconds since start, so that a person sees where the time goes."""
    began = time.monotonic()

    def say(line: str) -> None:
        console.print(Text.assemble((f"{time.monotonic() - began:6.1f} s", "dim"), f"  {line}"))

    return say


@contextmanager
def running(
    settings: Settings, say: Callable[[str], None], admission: Admission | None = None
) -> Iterator[tuple[Platform, Addresses]]:
    """The platform of ``settings``, started, once ``admission`` lets it; stopped on the way out whatever happens."""
    # A subscriber, a webhook or a list that cannot be used is reported before anything starts.
    subscriber_of(settings)
    Receivers.of(settings)
    require_usable_files(settings)
    chosen = settings.environment()
    platform = Platform(
        settings.home,
        {**{name: value for name, value in os.environ.items() if name.upper() not in chosen}, **chosen},
        webserver_host=settings.webserver_host,
        webserver_port=settings.webserver_port,
        engine_port=settings.engine_port,
        health_port=settings.health_port,
        driver_memory=settings.driver_memory,
        spark_remote=settings.spark_remote,
        hung_after_s=settings.hung_after_s,
        collect=settings.collect_path,
        with_catalogue=settings.serving.with_platform,
        facts={RETENTION: settings.retention.model_dump()},
    )
    with _own_signals():
        try:
            yield platform, platform.start(say, admission)
        finally:
            platform.stop()
            say("stopped; no process is left")


@contextmanager
def _own_signals() -> Iterator[None]:
    """Give signals back what they did before: a platform that has stopped ignores them."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in STOPPING} if is_main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_platform(settings: Settings, console: Console) -> None:
    """`sda up`: run until Ctrl-C. Where sites share the lake, stand by while another one works."""
    say = progress_printer(console)
    lease = site_lease(settings)
    try:
        if lease is None:
            _run(settings, say)
            return
        while _run_as_site(settings, say, lease):
            say("this site has lost the lake's lease")
    except KeyboardInterrupt:
        return


def _run_as_site(settings: Settings, say: Callable[[str], None], lease: SiteLease) -> bool:
    """Run the platform while the lake is this site's; return whether it was lost."""
    is_lost = threading.Event()
    with ExitStack() as kept:

        def admission(pause: Callable[[], object]) -> None:
            kept.enter_context(lease.kept(lease.await_held(say, pause), is_lost.set))

        _run(settings, say, is_lost, admission)
    return is_lost.is_set()


def _run(
    settings: Settings,
    say: Callable[[str], None],
    is_lost: threading.Event | None = None,
    admission: Admission | None = None,
) -> None:
    """Run the platform until a signal, or until ``is_lost``."""
    with running(settings, say, admission) as (platform, addresses):
        say(f"landing zones: {settings.landing_uri}")
        say(f"health: {addresses.watchdog}/health")
        say(f"UI: {addresses.webserver} – Ctrl-C stops the platform")
        platform.wait(is_lost)
