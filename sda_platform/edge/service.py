"""`sda collector run`: the collector as a process; reads a changed configuration again, ends on SIGTERM."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.edge.collector import Collector
from sda_platform.edge.config import CollectorConfig, ConfigError, load_config
from sda_platform.edge.control import control_plane
from sda_platform.edge.handover import Sockets
from sda_platform.edge.http_server import HttpServer
from sda_platform.edge.logs import Log
from sda_platform.landing.first_lines import MappingError, Mappings
from sda_platform.list_settings import FleetFile
from sda_platform.private_home import make_private
from sda_platform.published import COLLECTOR, publish, withdraw
from sda_platform.toml_file import state_of

_LOOK_S = 0.5


def run_collector(
    config_path: Path, *, landing_root: str, home: Path, log: Log | None = None, fleet: FleetFile | None = None
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code: 0, or 1 if records could not be sealed or a fault ended it.

    ``fleet``: where the list of the protected fleet is, whose messages are requested.

    SIGUSR2 seals what was received, and begins the program anew with the same listening sockets, see `handover`.

    Raises ConfigError for a configuration that cannot be used at the start, and MappingError for such a mapping.
    """
    config, sockets = _usable_config(config_path, home), Sockets.of_environment()
    make_private(home)
    run = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        run = uvloop.run
    code = run(_serve(config_path, config, landing_root, home, log or Log(), sockets, fleet))
    if sockets.is_handing_over:
        os.execve(sys.executable, sys.orig_argv, sockets.environment())  # noqa: S606
    return code


def _usable_config(config_path: Path, home: Path) -> CollectorConfig:
    """Return the configuration; a collector can start with it and with the mappings of ``home``.

    Raises ConfigError, MappingError.
    """
    Mappings.of(home).load()
    return load_config(config_path)


async def _serve(
    config_path: Path,
    config: CollectorConfig,
    landing_root: str,
    home: Path,
    log: Log,
    sockets: Sockets,
    fleet: FleetFile | None,
) -> int:
    collector = Collector(
        config.collector,
        landing_root=landing_root,
        home=home,
        clock=MissionClock.load(home),
        log=log,
        sockets=sockets,
        fleet=fleet,
    )
    is_ending = asyncio.Event()

    def hand_over() -> None:
        try:  # the next program could not start with it, and the sockets would be lost
            _usable_config(config_path, home)
        except (ConfigError, MappingError) as error:
            log.error("restart refused", reason=str(error))
            return
        sockets.is_handing_over = True
        is_ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, is_ending.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, hand_over)
    watching = asyncio.create_task(_watch(config_path, collector))
    try:
        app, bind = control_plane(collector, config.collector.token), config.collector.control
        async with HttpServer(app, bind, hosts=config.collector.hosts) as server:
            await collector.start(config)
            publish(home, COLLECTOR, server.address)
            log.info("collecting", control=server.address, sources=len(config.sources), pid=os.getpid())
            await _until_ended(is_ending, collector)
            watching.cancel()
            left = await collector.stop()
    finally:
        watching.cancel()
        withdraw(home, COLLECTOR)
    return 1 if left or not is_ending.is_set() else 0


async def _until_ended(is_ending: asyncio.Event, collector: Collector) -> None:
    """Return on a signal, or at a fault of what all sources need."""
    waits = [asyncio.create_task(is_ending.wait()), asyncio.create_task(collector.faults.get())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()


async def _watch(path: Path, collector: Collector) -> None:
    """Apply the configuration each time that its file changes; one that cannot be used is reported and left alone."""
    seen = state_of(path)
    while True:
        await asyncio.sleep(_LOOK_S)
        found = state_of(path)
        if found == seen:
            continue
        seen = found
        try:
            await collector.apply(load_config(path))
            collector.log.info("configuration applied", file=str(path))
        except ConfigError as error:
            collector.log.error("configuration not applied; the running sources stay as they are", reason=str(error))
