"""`sda catalog serve`: the catalogue's lookup endpoint; ``python -m`` is the one that `sda up` supervises."""

import fcntl
import secrets
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sda_platform.audit_log import user
from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.clock import MissionClock
from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.readers import ConsoleReader
from sda_platform.console.routes import console_routes
from sda_platform.edge.address import Address
from sda_platform.formats.segments import Sender
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.partner_files import identify
from sda_platform.orchestration.webhooks import secret_content
from sda_platform.private_home import make_private
from sda_platform.published import CATALOGUE, publish, url_of, withdraw
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.runtime.nats_server import connect_to
from sda_platform.runtime.platform_home import running_platform
from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides
from sda_platform.runtime.ui_roles import Role, User
from sda_platform.runtime.ui_users import Users, UsersError
from sda_platform.serving import micro_segment
from sda_platform.serving.access_log import DIRECTORY, AccessLog
from sda_platform.serving.clients import KnownClients, load_clients
from sda_platform.serving.errors import AlreadyServed, ServingError
from sda_platform.serving.event_stream import Connect
from sda_platform.serving.groups import load_groups
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.logins import People, no_people
from sda_platform.serving.puts import Puts, accepted_sets
from sda_platform.serving.server import Tls, application, serve
from sda_platform.serving.store import IndexStore
from sda_platform.serving_settings import ServingSettings
from sda_platform.settings import Settings


def run_endpoint(settings: Settings, *, host: str, port: int, or_any_port: bool = False) -> None:
    """Serve the catalogue of the lake at ``host`` and ``port`` until a signal ends it.

    ``or_any_port``: take a free port where that one is busy. Raises AlreadyServed, ClientsError, GroupsError,
    Misconfigured for an unusable stream of events, and OSError for a busy port.
    """
    is_open = Address(host, port).is_loopback
    named = load_clients(Path(settings.serving.clients)) if settings.serving.clients else KnownClients()
    clients = named.reached(by_others=not is_open, is_declared_open=settings.serving.open)
    groups = load_groups(Path(settings.serving.groups) if settings.serving.groups else None)
    tls = _tls(settings.serving)
    home = settings.home.absolute()
    make_private(home)
    with _one_of(home), _listening(host, port, or_any_port=or_any_port) as listening:
        clock = MissionClock.load(home)
        source = _source(settings, clock)
        live = LiveCatalogue(source, IndexStore(home / "serving"), clock.now_ns)
        puts = Puts(live, source.land)
        address = str(Address(*listening.getsockname()[:2]))
        try:
            submissions = SubmittedEphemerides(_lake(settings, clock), settings.landing_uri)
            users = _users(settings)
            pages = console_routes(_console(settings, clock, console_readers(users, is_open=is_open)))
            has_log = bool(clients.by_token) or not is_open
            app = application(
                live,
                puts,
                submissions,
                clients,
                settings.own_hosts,
                groups,
                pages,
                people=_people(users),
                log=AccessLog(home / DIRECTORY) if has_log else None,
                event_stream=_event_stream(settings),
            )
            serve(app, listening, lambda: publish(home, CATALOGUE, address, tls.certificate if tls else ""), tls)
        finally:
            withdraw(home, CATALOGUE)


def put_file(settings: Settings, file: Path) -> tuple[int, list[dict[str, Any]]]:
    """Make the usable element sets of ``file`` durable in the landing zone; return their count and the refusals.

    A running endpoint serves them within seconds. Raises PartnerFileError for a file of another format.
    """
    clock = MissionClock.load(settings.home)
    segment_format = identify(file, feed=ELEMENTS_FEED).format
    sets, refused = accepted_sets(file.read_bytes(), segment_format, clock.now_ns())
    if sets:
        data = micro_segment.encode(sets)
        origins = [Sender(user()).origin(len(sets))]
        _source(settings, clock).land(micro_segment.segment_name(data), data, origins)
    return len(sets), [asdict(each) for each in refused]


def _tls(serving: ServingSettings) -> Tls | None:
    """Return the certificate and the key of the endpoint.

    Raises ServingError where one is missing or they do not fit, Misconfigured where others may use the key.
    """
    if not serving.certificate and not serving.key:
        return None
    if not serving.certificate or not serving.key:
        raise ServingError("TLS needs both: SDA_SERVING_CERTIFICATE and SDA_SERVING_KEY")
    found = Tls(str(Path(serving.certificate).absolute()), str(Path(serving.key).absolute()))
    secret_content(Path(found.key), "SDA_SERVING_KEY")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(found.certificate, found.key)
    except OSError as error:  # also what OpenSSL cannot read
        reason = error.strerror or str(error)
        raise ServingError(f"SDA_SERVING_CERTIFICATE and SDA_SERVING_KEY cannot be used: {reason}") from None
    return found


def _console(settings: Settings, clock: MissionClock, reader: Callable[[str], ConsoleReader]) -> ConsoleContext:
    """Return what the console's pages are made from; they link to the UI of the platform that runs, or a known one."""
    lake, home = _lake(settings, clock), settings.home.absolute()

    def ui_url() -> str | None:
        if settings.ui_url:
            return settings.shown_ui_url
        state = running_platform(home)
        return str(state["addresses"]["webserver"]) if state else None

    return ConsoleContext(
        lake,
        settings,
        Overviews(lake, settings.landing_uri),
        lambda: running_platform(home) is not None,
        ui_url,
        reader,
    )


def console_readers(users: Users | None, *, is_open: bool) -> Callable[[str], ConsoleReader]:
    """Return what finds the reader of a request: by ``users`` of the UI; without any, all may act on loopback alone."""
    if users is None:
        return lambda _: ConsoleReader(may_act=is_open)

    def of(authorization: str) -> ConsoleReader:
        found = _user(users, authorization)
        return ConsoleReader(found.name, found.role >= Role.OPERATOR, True) if found else ConsoleReader(has_login=True)

    return of


def _event_stream(settings: Settings) -> Connect | None:
    chosen = settings.serving
    if not chosen.event_stream:
        return None
    is_plain_allowed = settings.access.plain_http
    return connect_to(chosen.event_stream, chosen.event_stream_credentials, is_plain_allowed=is_plain_allowed)


def _users(settings: Settings) -> Users | None:
    place = settings.access.webserver_users
    return Users(Path(place), secrets.token_urlsafe()) if place else None


def _people(users: Users | None) -> People:
    """Return what finds the user of the UI by a header: each may read."""
    if users is None:
        return no_people

    def name_of(authorization: str) -> str | None:
        found = _user(users, authorization)
        return found.name if found else None

    return name_of


def _user(users: Users, authorization: str) -> User | None:
    try:
        return users.of(authorization)
    except UsersError:  # nobody is known until the file can be used
        return None


def _source(settings: Settings, clock: MissionClock) -> LakeSource:
    return LakeSource(_lake(settings, clock), settings.landing_uri)


def _lake(settings: Settings, clock: MissionClock) -> Lake:
    return Lake(settings.lake_uri, clock, without_session)


@contextmanager
def _one_of(home: Path) -> Iterator[None]:
    """Be the one endpoint of ``home``, because one process writes its index. Raises AlreadyServed."""
    (home / "serving").mkdir(parents=True, exist_ok=True)
    with (home / "serving" / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            where = url_of(home, CATALOGUE)
            raise AlreadyServed(f"the catalogue of {home} is served already at {where}: use that one") from None
        yield


def _listening(host: str, port: int, *, or_any_port: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError:
        if not or_any_port:
            raise
        return socket.create_server((host, 0), family=family, backlog=128)


if __name__ == "__main__":
    settings = Settings()
    try:
        run_endpoint(settings, host=settings.serving.host, port=settings.serving.port, or_any_port=True)
    except (Misconfigured, ServingError) as error:
        sys.exit(str(error))
