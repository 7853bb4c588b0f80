"""A real Prometheus with the configuration and rules of `monitoring/`."""

import json
import subprocess
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sda_platform.runtime.processes import free_port
from sda_platform_tests.support.programs import program
from sda_platform_tests.support.running_platform import eventually

MONITORING: Final = Path(__file__).parents[2] / "monitoring"


@contextmanager
def prometheus(targets: Mapping[str, str], scrape_s: int) -> Iterator[str]:
    """The address of a server that scrapes ``targets``: addresses, by those in the configuration.

    Raises RuntimeError if none is installed.
    """
    installed = program("prometheus")
    if installed is None:
        raise RuntimeError("Prometheus is not installed")
    configuration = (MONITORING / "prometheus.yml").read_text()
    intervals = f"scrape_interval: {scrape_s}s\n  evaluation_interval: {scrape_s}s"
    for usual, other in {"scrape_interval: 15s": intervals, **targets}.items():
        assert usual in configuration
        configuration = configuration.replace(usual, other)
    with tempfile.TemporaryDirectory(prefix="sda-prometheus-") as directory:
        Path(directory, "rules.yml").write_bytes((MONITORING / "rules.yml").read_bytes())
        Path(directory, "prometheus.yml").write_text(configuration)
        address = f"127.0.0.1:{free_port(0)}"
        options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
        with subprocess.Popen([str(installed), *options], cwd=directory, stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: asked(address, "query", query="up") is not None, 60.0)
                yield address
            finally:
                process.terminate()


def asked(address: str, path: str, **parameters: str) -> Any:
    """The data of an answer of its HTTP interface; None until it answers."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:
            return json.load(answer)["data"]
    except OSError:
        return None
