"""The endpoint's routes, each declared once: the server and the OpenAPI document are made of this list."""

from typing import Final

from sda_platform.orbits.risk.levels import RISK_LEVELS
from sda_platform.serving import (
    celestrak,
    endpoints,
    ephemeris,
    events,
    scheduled,
    spacetrack,
    spacetrack_login,
    submissions,
)
from sda_platform.serving.answers import ALERT, CONJUNCTION, SCHEDULED_OBSERVATION, many, one
from sda_platform.serving.changes_since import CURSOR, PATTERN, SINCE
from sda_platform.serving.parameters import Parameter, choice, instant, instants, number, numbers, seconds
from sda_platform.serving.rendering import RENDERINGS
from sda_platform.serving.requests import AS_OF, LONGEST_PAGE, PLACE_SCHEMA, SNAPSHOT
from sda_platform.serving.route import PREDICATES, Audience, Route
from sda_platform.serving.scheduled import FORMATS, FRAME_S
from sda_platform.serving.source import FEEDS
from sda_platform.serving.spacetrack_classes import CLASSES

_FORMAT: Final = {"format": choice("Format of the answer instead of the Accept header", tuple(RENDERINGS))}
_AFTER: Final = "Where the page begins; the Link header of the page before gives it."
_LIMIT: Final = {"limit": number(f"Most rows of an answer, up to {LONGEST_PAGE}.", 1, LONGEST_PAGE)}
_SNAPSHOT: Final = {SNAPSHOT: Parameter("The state that the page is of; the Link header of the page before gives it.")}
_PAGE: Final = {**_LIMIT, "after": number(_AFTER), **_SNAPSHOT}
_AS_OF: Final = {AS_OF: instant("The catalogue as it was known at this mission time, ISO 8601.")}
_SINCE: Final = {
    SINCE: Parameter(
        f"Only what may have changed since the answer with this {CURSOR}.",
        {"type": "string", "pattern": f"^{PATTERN}$"},
    )
}
_TIMES: Final = {"at": instants("An instant, ISO 8601, UTC; may be repeated. Without it: now.")}
_SPAN: Final = {"since": instant("First epoch, ISO 8601."), "until": instant("Last epoch, ISO 8601.")}


_ROWS: Final = {"type": "array", "items": {"type": "object"}}
_SETS: Final = tuple(dict.fromkeys(each.media_type for each in RENDERINGS.values()))

ROUTES: Final = (
    Route(
        "/health",
        endpoints.health,
        "The served version, what waits, and the engine's counters.",
        one("Health"),
        audience=Audience.EVERYONE,
    ),
    Route(
        "/objects",
        endpoints.objects,
        "The sets in force of many objects, ascending by number.",
        many("ElementSet"),
        {
            "id": numbers("Catalogue numbers, separated by commas."),
            "id_min": number("First catalogue number."),
            "id_max": number("Last catalogue number."),
            "name": Parameter("A part of the name."),
            "designator": Parameter("How the international designator begins: 1998-067."),
            "epoch_min": instant("First epoch, ISO 8601."),
            "epoch_max": instant("Last epoch, ISO 8601."),
            **_PAGE,
            **_SINCE,
            **_AS_OF,
            **_FORMAT,
        },
        answers=_SETS,
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/objects/{norad_id}",
        endpoints.one_object,
        "The set in force of an object.",
        many("ElementSet"),
        {**_AS_OF, **_FORMAT},
        answers=_SETS,
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/objects/{norad_id}/history",
        endpoints.history,
        "Every set of an object, by epoch.",
        many("ElementSet"),
        {**_SPAN, **_LIMIT, "after": Parameter(_AFTER, PLACE_SCHEMA), **_SNAPSHOT, **_AS_OF, **_FORMAT},
        answers=_SETS,
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/objects/{norad_id}/states",
        endpoints.object_states,
        "States of an object by SGP4 from the set in force at each time: km and km/s, TEME.",
        many("State"),
        {**_TIMES, **_AS_OF},
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/objects/{norad_id}/ephemeris",
        ephemeris.ephemeris,
        "States of an object with covariances: by the best ephemeris of each time, else by SGP4. km, km/s, UTC.",
        one("Ephemeris"),
        {
            "from": instant("First time, ISO 8601; without it: now."),
            "until": instant("Last time, ISO 8601; without it a day after the first."),
            "step": seconds("Time from state to state, seconds; 60.", *ephemeris.STEP_S),
            "frame": choice("Frame of states and covariances; TEME unless given", ephemeris.FRAMES),
            "source": choice("The best ephemeris of each time, or sets alone", ephemeris.SOURCES),
            "format": choice("Format of the answer instead of the Accept header", tuple(ephemeris.FORMATS)),
            **_AS_OF,
        },
        answers=("application/json", "application/x-ccsds-kvn", "application/xml"),
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/states",
        endpoints.all_states,
        "States of several objects, or of a page of all.",
        many("State"),
        {"id": numbers("Catalogue numbers, separated by commas."), **_TIMES, **_PAGE, **_AS_OF},
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/objects/{norad_id}/conjunctions",
        endpoints.conjunctions,
        "The current assessments of an object's conjunctions, by time of closest approach.",
        many(CONJUNCTION),
        _AS_OF,
    ),
    Route(
        "/alerts",
        endpoints.alerts,
        "The current conjunction alerts, highest level first, then Pc.",
        many(ALERT),
        {
            "risk": choice("Only alerts of this level", RISK_LEVELS[1:]),
            "norad_id": number("Only alerts of this object, by its catalogue number.", 1),
            "until": instant("Only alerts whose closest approach is before this instant, ISO 8601."),
            **_AS_OF,
        },
    ),
    Route(
        "/schedule",
        scheduled.schedule,
        "The schedule of the sensors: scheduled observations by their beginning.",
        {"anyOf": [many(SCHEDULED_OBSERVATION), {"type": "array", "items": {"type": "object"}}]},
        {
            "source_id": Parameter("The sensor; without it: all."),
            "since": instant("Observations that end after this instant, ISO 8601."),
            "until": instant("Observations that begin before this instant, ISO 8601."),
            "format": choice("Rows of the table, or offered times and task submissions for SensorKit", FORMATS),
            "exposure_s": seconds("Exposure of a frame in SensorKit's tasks, seconds; 2.", *FRAME_S),
            "interval_s": seconds("Time from frame to frame in SensorKit's tasks, seconds; 10.", *FRAME_S),
            **_AS_OF,
        },
    ),
    Route(
        "/events",
        events.events,
        "What commits changed after a cursor: a stream of events, or a page of them.",
        one("Events"),
        {
            "since": Parameter(
                f"The cursor of the page before, or the id of an event; {events.FIRST}: before all. Without it: now.",
                {"type": "string", "pattern": f"^{events.CURSOR_PATTERN}$"},
            ),
            "feeds": Parameter(
                f"Names, separated by commas, of {', '.join(FEEDS)}; without it: all.",
                {"type": "string", "pattern": f"^({'|'.join(FEEDS)})(,({'|'.join(FEEDS)}))*$"},
            ),
            **_LIMIT,
        },
        answers=events.MEDIA_TYPES,
    ),
    Route(
        "/elements",
        endpoints.put_elements,
        "Take element sets (OMM, two-line sets). They are durable and served when the answer comes.",
        one("TakenElements"),
        method="POST",
        takes=endpoints.PUT_FORMATS,
        audience=Audience.CLIENTS,
    ),
    Route(
        "/ephemerides",
        submissions.put_ephemerides,
        "Take an operator's ephemerides (OEM with covariances). They are durable when the answer comes.",
        one("TakenEphemerides"),
        method="POST",
        statuses=(200, 201),
        takes=submissions.EPHEMERIS_FORMATS,
        audience=Audience.CLIENTS,
    ),
    Route(
        "/ephemerides/{submission_id}",
        submissions.submission,
        "What became of submitted ephemerides: the state, and the conjunctions or their CDMs.",
        one("Submission"),
        {"format": choice("State and conjunctions, or their CDMs, instead of the Accept header", submissions.ANSWERS)},
        answers=("application/json", "application/x-ccsds-kvn", "application/xml"),
        statuses=(200, 202),
        audience=Audience.CLIENTS,
    ),
    Route(
        "/NORAD/elements/gp.php",
        celestrak.gp,
        "CelesTrak's query.",
        many("ElementSet"),
        {**celestrak.GP_QUERY, **{name.upper(): each for name, each in {**_AS_OF, **_SINCE}.items()}},
        answers=_SETS,
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/NORAD/elements/supplemental/sup-gp.php",
        celestrak.sup_gp,
        "CelesTrak's query of supplemental data: what operators brought, one set of each source.",
        many("ElementSet"),
        {**celestrak.SUP_GP_QUERY, **{name.upper(): each for name, each in _AS_OF.items()}},
        answers=_SETS,
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        f"/basicspacedata/query/{{{PREDICATES}}}",
        spacetrack.query,
        f"Space-Track's query of the classes {', '.join(CLASSES)}.",
        {"anyOf": [_ROWS, {"type": "object", "properties": {"data": _ROWS}}]},
        {**_AS_OF, **_SINCE},
        answers=_SETS,
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/basicspacedata/modeldef/class/{name}",
        spacetrack.model,
        "The fields of a class of Space-Track's, and their types.",
        {"type": "object", "properties": {"data": _ROWS}},
        audience=Audience.READERS_OF_SETS,
    ),
    Route(
        "/ajaxauth/login",
        spacetrack_login.login,
        "Space-Track's login: `identity` is a client's name, `password` its token; with `query` it answers that.",
        {"type": ["string", "object", "array"]},
        method="POST",
        takes=spacetrack_login.LOGIN,
        audience=Audience.EVERYONE,
    ),
    Route(
        "/ajaxauth/logout",
        spacetrack_login.logout,
        "Space-Track's logout.",
        {"type": "string"},
        audience=Audience.EVERYONE,
    ),
)
