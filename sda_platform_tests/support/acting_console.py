"""The console over one alert, behind the gate, with or without users of the platform: who acts in it, and how."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware

from sda_platform.conjunction.acknowledging import known_actions
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.routes import console_routes
from sda_platform.http_gate import HttpGate
from sda_platform.lake.lake import Lake
from sda_platform.runtime.serve import console_readers
from sda_platform.runtime.ui_users import Users, new_user
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.encounters import TCA_NS, assessed
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client

HTML = {"accept": "text/html"}
ALERT = {"event_id": "an-event", "sequence": 2, "op": "insert", "risk": "red", "status": "open", "norad_id_1": 25544,
         "norad_id_2": 5, "tca_time_ns": TCA_NS, "miss_distance_km": 0.3, "as_of_ns": START_NS}  # fmt: skip
PAGE = "/conjunctions/an-event"


class ActingConsole:
    """The console, as a reader sends requests to it."""

    def __init__(self, home: Path, client: Client, lake: Lake, tokens: dict[str, str]) -> None:
        self.home, self.client, self.lake, self.tokens = home, client, lake, tokens

    def act(self, user: str = "", headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """Send the form."""
        sent = {"action": "acknowledge", "revision": "2", **fields}
        return self.client.post(PAGE, data=sent, headers={**HTML, **self.login(user), **(headers or {})})

    def login(self, user: str) -> dict[str, str]:
        """The header of a user; empty without one."""
        if not user:
            return {}
        pair = base64.b64encode(f"{user}:{self.tokens.get(user, 'wrong')}".encode()).decode()
        return {"authorization": f"Basic {pair}"}

    def text(self, user: str = "", path: str = PAGE) -> str:
        """A page."""
        return self.client.get(path, headers={**HTML, **self.login(user)}).text

    @property
    def actions(self) -> list[tuple[Any, ...]]:
        """What was recorded: by whom, action, revision, comment, assigned to."""
        known = known_actions(self.lake, str(self.home / "landing")).get("an-event", [])
        names = ("acknowledged_by", "action", "revision", "comment", "assigned_to")
        return [tuple(each[name] for name in names) for each in known]


@contextmanager
def acting_console(home: Path, *, has_users: bool = False, is_open: bool = True) -> Iterator[ActingConsole]:
    """The console of a lake with one alert; ``is_open``: only this machine reaches it."""
    lake = small_catalogue(home, [5, 25544])
    commit(lake, CONJUNCTION_ASSESSMENTS, [assessed(0)])
    commit(lake, CONJUNCTION_ALERTS, [ALERT])
    fleet = home / "fleet.csv"
    home.mkdir(exist_ok=True)
    fleet.write_text("norad_id,name,operator,contact\n25544,ISS,NASA,desk@nasa.example\n")
    tokens, settings, users = {}, Settings(home=home), None
    if has_users:
        made = {name: new_user(name, name.partition("-")[0]) for name in ("viewer-v", "operator-o", "admin-a")}
        place = home / "users.toml"
        place.write_text("".join(section for _, section in made.values()))
        place.chmod(0o600)
        tokens, users = {name: token for name, (token, _) in made.items()}, Users(place, "probes")
    screening = settings.screening.model_copy(update={"fleet": str(fleet)})
    settings = settings.model_copy(update={"screening": screening})
    overviews, reader = Overviews(lake, settings.landing_uri), console_readers(users, is_open=is_open)
    context = ConsoleContext(lake, settings, overviews, lambda: True, lambda: None, reader)
    app = Starlette(routes=console_routes(context), middleware=[Middleware(HttpGate)])
    with Client(app) as client:
        yield ActingConsole(home, client, lake, tokens)
