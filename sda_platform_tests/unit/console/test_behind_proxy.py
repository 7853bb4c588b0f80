"""The console behind the proxy that is shipped: one login for it and the UI, and links that lead to its own pages."""

import re
import socket
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from starlette.applications import Starlette

from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.routes import console_routes
from sda_platform.settings import Settings
from sda_platform_tests.support.proxy import PASSWORD, USER, Proxy, proxy
from sda_platform_tests.support.served_ui import served
from sda_platform_tests.support.small_catalogue import small_catalogue


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """nginx before a console; its UI and its engine do not run."""
    home = tmp_path_factory.mktemp("home")
    lake, settings = small_catalogue(home, [5]), Settings(home=home)
    context = ConsoleContext(lake, settings, Overviews(lake, settings.landing_uri), lambda: False, lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as absent, served(Starlette(routes=console_routes(context))) as port:
        other = absent.getsockname()[1]
        with proxy(home / "proxy", ui=other, connect=other, console=port) as found:
            yield found


def answer(front: Proxy, path: str, password: str | None = PASSWORD) -> tuple[int, str, str]:
    """Status, text and address, after redirects, of what a person with ``password`` gets."""
    request = urllib.request.Request(f"https://127.0.0.1:{front.ui_port}{path}", headers={"Accept": "text/html"})
    if password is not None:
        request.add_header("Authorization", f"Basic {b64encode(f'{USER}:{password}'.encode()).decode()}")
    trusting = ssl.create_default_context(cafile=str(front.certificate))
    try:
        with urllib.request.urlopen(request, timeout=30, context=trusting) as found:
            return found.status, found.read().decode(), found.url
    except urllib.error.HTTPError as refusal:
        return refusal.code, "", ""


def test_it_asks_for_the_login_of_the_ui(front: Proxy) -> None:
    assert [answer(front, "/console/sensors", password)[0] for password in (None, "guessed", PASSWORD)] == [
        401,
        401,
        200,
    ]


def test_every_link_of_a_page_leads_below_its_path(front: Proxy) -> None:
    status, text, address = answer(front, "/console/sensors")
    links = [each for each in re.findall(r'(?:href|src)="([^"#]+)"', text) if "://" not in each]
    assert status == 200 and len(links) > 5
    for link in dict.fromkeys(links[:8]):
        place = urljoin(address, link)
        path = place.partition(str(front.ui_port))[2]
        assert path.startswith("/console/") and answer(front, path)[0] == 200, link
