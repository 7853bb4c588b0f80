"""The platform's home directory: the lock, ``platform.json``, Dagster's instance files.

The holder of the lock is the only platform of this home. The kernel releases the lock when the process ends or is
killed. Stdlib only.
"""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from sda_platform.clock import CLOCK_FILE
from sda_platform.lake.object_store import is_object_store
from sda_platform.private_home import make_private
from sda_platform.published import PLATFORM
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.lake_lock import take_lake_lock, take_landing_lock
from sda_platform.whole_files import replace_content

STATE_FILE = f"{PLATFORM}.json"
LOCK_FILE = "platform.lock"
RETENTION = "retention"
"""In the state of a platform: its `RetentionSettings`."""
DEMO_HOME = "demo"
"""Below a home, the home of its demo."""
POSTGRES_VARIABLE = "SDA_DAGSTER_POSTGRES_URL"
POSTGRES_SCHEME = "postgresql+psycopg2://"
"""How the setting begins. Without a driver's name, SQLAlchemy takes one that Dagster's library does not install."""
_POSTGRES = {"module": "sda_platform.runtime.postgres_storage", "class": "PostgresStorage"}
_SOCKET_PATH_BYTES = 107
_WORKSPACE = "workspace.yaml"
_SOCKET, _SOCKET_DIRECTORY = "code_server.sock", "sda-"
INSTANCE_FILES = ("dagster/dagster.yaml", f"dagster/{_WORKSPACE}")
"""What `prepare` writes in a home. They name classes and addresses."""
_RUN_LOGS = {"module": "sda_platform.runtime.run_logs", "class": "RunLogs"}
_SQLITE = {"module": "sda_platform.runtime.sqlite_storage", "class": "SqliteStorage"}


class AlreadyRunning(RuntimeError):
    """Another platform works in this home."""


def require_home(home: Path, *places: str) -> None:
    """Raise PlatformError if neither ``home`` nor one of ``places``, its lake and landing zones, was ever used.

    An empty answer from a directory that is no home would be read as "nothing is there".
    """
    if is_home(home, *places):
        return
    demo = home.absolute() / DEMO_HOME
    hint = f" (its demo is in {demo})" if is_home(demo) else ""
    raise PlatformError(
        f"{home.absolute()} is no home of a platform{hint}: give one by --home or SDA_HOME, or start one there with "
        "`sda up`"
    )


def is_home(home: Path, *places: str) -> bool:
    """Return whether ``home``, or one of ``places``, its lake and landing zones, was ever used.

    What lies in an object store is not looked for: it counts as used.
    """
    used = [home / LOCK_FILE, home / CLOCK_FILE, *(Path(place) for place in places if not is_object_store(place))]
    return any(is_object_store(place) for place in places) or any(path.exists() for path in used)


def take_lock(home: Path) -> IO[str]:
    """Become the platform of ``home`` until the returned file is closed. Raises AlreadyRunning."""
    make_private(home)
    lock = (home / LOCK_FILE).open("a")
    # What only asks whether a platform runs shares the lock for a moment: then this one asks again.
    while not (is_taken := _locked(lock, fcntl.LOCK_EX)) and _locked(lock, fcntl.LOCK_SH):
        fcntl.flock(lock, fcntl.LOCK_UN)
    if not is_taken:
        lock.close()
        state = read_state(home)
        address = state.get("addresses", {}).get("webserver", "still starting")
        raise AlreadyRunning(
            f"a platform already runs in {home} (process {state.get('pid', 'unknown')}, {address}): "
            "use that one, stop it, or choose another home with SDA_HOME"
        )
    return lock


def take_locks(home: Path, lake_uri: str, landing_uri: str) -> ExitStack:
    """Become the platform of ``home``, its lake and its landing zones until the returned stack is closed.

    Raises AlreadyRunning or `lake_lock.LakeInUse`.
    """
    with ExitStack() as held:
        held.enter_context(take_lock(home))
        for take, uri in ((take_lake_lock, lake_uri), (take_landing_lock, landing_uri)):
            if lock := take(uri, home):
                held.enter_context(lock)
        return held.pop_all()


def running_platform(home: Path) -> dict[str, Any] | None:
    """Return the contents of ``platform.json`` while a platform runs in ``home``, else None."""
    if not (home / LOCK_FILE).exists():
        return None
    with (home / LOCK_FILE).open("a") as lock:
        return None if _locked(lock, fcntl.LOCK_SH) else read_state(home)


def _locked(lock: IO[str], kind: int) -> bool:
    """Take a lock of this kind unless another process has one that excludes it; return whether it is taken."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_state(home: Path) -> dict[str, Any]:
    """Read the state that the last platform of ``home`` recorded; empty where there is none, or not whole."""
    try:
        state = json.loads((home / STATE_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(home: Path, state: dict[str, Any]) -> None:
    """Replace ``platform.json`` in one step."""
    replace_content(home / STATE_FILE, json.dumps(state, indent=1) + "\n")


def clear_state(home: Path) -> None:
    """Remove ``platform.json``, and the socket of the code server."""
    _remove_code_server_socket(home)
    (home / STATE_FILE).unlink(missing_ok=True)


def dagster_home(home: Path) -> Path:
    """Return the directory of Dagster's instance, DAGSTER_HOME of its processes."""
    return home / "dagster"


def prepare(home: Path, code_server: str, environment: Mapping[str, str]) -> Path:
    """Lay out ``home`` and write Dagster's two files; returns the workspace file.

    ``code_server`` is its address (host:port, or unix:path). ``environment`` decides where Dagster's records are.
    Raises PlatformError for a Postgres address without its driver.
    """
    postgres = environment.get(POSTGRES_VARIABLE, "")
    if postgres and not postgres.startswith(POSTGRES_SCHEME):
        raise PlatformError(f"{POSTGRES_VARIABLE} must begin with {POSTGRES_SCHEME}")
    instance = dagster_home(home)
    make_private(home)
    for directory in (instance, home / "logs", home / "engine" / "scratch"):
        directory.mkdir(parents=True, exist_ok=True)
    custom: dict[str, Any] = (
        {**_POSTGRES, "config": {"postgres_url": {"env": POSTGRES_VARIABLE}}}
        if postgres
        else {**_SQLITE, "config": {"base_dir": str(instance.absolute())}}
    )
    outputs = {**_RUN_LOGS, "config": {"base_dir": str(instance.absolute() / "storage")}}
    own = {"storage": {"custom": custom}, "compute_logs": outputs}
    lines = [_instance_file().read_text(), *(f"{name}: {json.dumps(value)}" for name, value in own.items()), ""]
    replace_content(instance / "dagster.yaml", "\n".join(lines))  # JSON is YAML
    host, _, port = code_server.rpartition(":")
    place = {"socket": port} if host == "unix" else {"host": host, "port": int(port)}
    server = {**place, "location_name": "sda_platform"}
    workspace = instance / _WORKSPACE
    replace_content(workspace, json.dumps({"load_from": [{"grpc_server": server}]}) + "\n")
    return workspace


def code_server_socket(home: Path) -> str:
    """Return the address (unix:path) of a code server that only the platform's own user reaches.

    The kernel allows 107 bytes. Where the home's path is too long, the socket is in a new private directory elsewhere.
    It is removed when the platform stops; what a killed one left, here.
    """
    _remove_code_server_socket(home)
    path = dagster_home(home.absolute()) / _SOCKET
    if len(os.fsencode(path)) > _SOCKET_PATH_BYTES:
        path = Path(tempfile.mkdtemp(prefix=_SOCKET_DIRECTORY), path.name)
    return f"unix:{path}"


def _remove_code_server_socket(home: Path) -> None:
    """Remove the socket that the workspace file names, and its directory where that is not in the home."""
    instance = dagster_home(home.absolute())
    try:
        servers = json.loads((instance / _WORKSPACE).read_text())["load_from"]
        path = Path(servers[0]["grpc_server"]["socket"])
    except (FileNotFoundError, ValueError, LookupError):  # none yet, of another machine, or cut off
        return
    with suppress(OSError):  # its directory is gone, or its name has another owner by now
        # The file may be that of a backup from somebody else, and name anything.
        if path.name == _SOCKET and path.is_socket():
            path.unlink()
        if path.parent != instance and path.parent.name.startswith(_SOCKET_DIRECTORY):
            path.parent.rmdir()


def longest_run_h() -> float:
    """Return the longest that Dagster lets a run take, hours."""
    found = re.search(r"^ *max_runtime_seconds: *(\d+)", _instance_file().read_text(), re.MULTILINE)
    if found is None:
        raise ValueError("dagster.yaml does not limit how long a run takes (run_monitoring.max_runtime_seconds)")
    return int(found[1]) / 3600


def _instance_file() -> Path:
    """Return the project's ``dagster.yaml``: at the top of a checkout, inside the package of an installed wheel."""
    package = Path(__file__).parents[1]
    found = [path for path in (package.parent / "dagster.yaml", package / "dagster.yaml") if path.is_file()]
    if not found:
        raise FileNotFoundError("dagster.yaml is missing from this installation")
    return found[0]
