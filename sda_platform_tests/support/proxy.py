"""A real nginx with the configuration that this repository ships, in a directory of its own, with a certificate."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform_tests.support.nginx_program import nginx_program
from sda_platform_tests.support.running_platform import eventually

TEMPLATE = Path(__file__).parents[2] / "deploy/nginx.conf.template"
USER, PASSWORD = "operator", "of-the-test"
_AROUND = """
daemon off;
master_process off;
pid nginx.pid;
error_log nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    include sda.conf;
}
"""


@dataclass(frozen=True)
class Proxy:
    """Where the proxy listens, and the certificate that its clients must trust."""

    ui_port: int
    engine_port: int
    certificate: Path

    @property
    def remote(self) -> str:
        """The address of the engine behind it."""
        return f"sc://{engine.HOST}:{self.engine_port}/;use_ssl=true"


@contextmanager
def proxy(directory: Path, *, ui: int, connect: int, console: int | None = None) -> Iterator[Proxy]:
    """nginx before these ports of this machine, ``console`` by default that of the UI; skips the test where there is
    no nginx.
    """
    program = nginx_program()
    if program is None or shutil.which("openssl") is None:
        pytest.skip("no nginx here (Debian, Ubuntu: apt install nginx-light)")
    directory.mkdir()
    certificate = certify(directory)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], capture_output=True, text=True, check=True)
    (directory / "users").write_text(f"{USER}:{hashed.stdout}")
    found = Proxy(free_port(0), free_port(0), certificate)
    chosen = {
        "PROXY_UI": f"{engine.HOST}:{ui}",
        "PROXY_CONSOLE": f"{engine.HOST}:{ui if console is None else console}",
        "PROXY_ENGINE": f"{engine.HOST}:{connect}",
        "PROXY_UI_PORT": f"{engine.HOST}:{found.ui_port}",
        "PROXY_ENGINE_PORT": f"{engine.HOST}:{found.engine_port}",
        "PROXY_SECRETS": str(directory),
    }
    (directory / "sda.conf").write_text(_substituted(TEMPLATE.read_text(), chosen))
    (directory / "nginx.conf").write_text(_AROUND)
    command = [str(program), "-p", str(directory), "-c", "nginx.conf", "-e", "start.log"]
    with (directory / "output.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        started = eventually(lambda: engine.is_listening(found.ui_port) or process.poll() is not None, 30)
        assert started and process.poll() is None, (directory / "output.log").read_text()
        yield found
    finally:
        process.kill()
        process.wait()


def _substituted(template: str, values: Mapping[str, str]) -> str:
    """Replace variables in braces only, as the image of nginx replaces those that it is given."""
    return re.sub(r"\$\{(PROXY_\w+)\}", lambda found: values[found[1]], template)


def certify(directory: Path) -> Path:
    """Make a certificate for this machine that is its own authority."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=sda"]
    files = ["-keyout", str(directory / "tls.key"), "-out", str(directory / "tls.crt")]
    names = ["-addext", f"subjectAltName=IP:{engine.HOST},DNS:localhost"]
    subprocess.run([*command, *files, *names], capture_output=True, check=True)
    return directory / "tls.crt"
