"""The console below `/console/`, as an ingress passes it on that changes no path: the same pages, links and answers."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest

from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.routes import console_routes
from sda_platform.settings import Settings
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import endpoint_over

HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The lookup endpoint with the console, as `sda catalog serve` has them."""
    home = tmp_path_factory.mktemp("home")
    lake, settings = small_catalogue(home / "console", [5]), Settings(home=home)
    context = ConsoleContext(lake, settings, Overviews(lake, settings.landing_uri), lambda: False, lambda: None)
    with endpoint_over(home, pages=console_routes(context)) as (client, _):
        yield client


@pytest.mark.parametrize("path", ["/", "/sensors", "/objects?text=5", "/objects/25544?format=tle", "/nothing"])
def test_it_answers_as_at_the_root(endpoint: Client, path: str) -> None:
    there, below = (endpoint.get(f"{prefix}{path}", headers=HTML) for prefix in ("", "/console"))
    assert (below.status_code, below.text) == (there.status_code, there.text)


@pytest.mark.parametrize("path", ["/console/", "/console/sensors"])
def test_each_link_of_a_page_leads_below_it(endpoint: Client, path: str) -> None:
    links = re.findall(r'(?:href|src)="([^"#]+)"', endpoint.get(path, headers=HTML).text)
    assert len(links) > 5
    for link in dict.fromkeys(links[:8]):
        place = urljoin(path, link)
        assert place.startswith("/console/") and endpoint.get(place, headers=HTML).status_code == 200, link


def test_the_address_without_its_slash_leads_to_the_first_page_with_its_filters(endpoint: Client) -> None:
    answer = endpoint.get("/console?level=red")
    assert (answer.status_code, answer.headers["location"]) == (308, "/console/?level=red")


def test_only_one_prefix_is_taken_away(endpoint: Client) -> None:
    assert endpoint.get("/console/console/sensors", headers=HTML).status_code == 404
