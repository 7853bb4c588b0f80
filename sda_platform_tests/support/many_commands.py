"""Many commands of `sda`, each in a process of its own that need not import what all of them use."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_IMPORTED: Final = ("sda_platform.registry", "sda_platform.definitions", "duckdb", "pyspark.sql.connect.session")
_FORKING: Final = """
import importlib, json, os, sys, traceback
for name in json.loads(sys.stdin.readline()):
    importlib.import_module(name)
from sda_platform.cli.main import main
for line in sys.stdin:
    words, output = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            opened = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number in (1, 2):
                os.dup2(opened, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            main(words, prog_name="sda")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\\n")
    sys.stdout.flush()
"""


class ManyCommands:
    """Runs commands one after the other with ``environment``; their output goes to a file in ``directory``."""

    def __init__(self, environment: Mapping[str, str], directory: Path) -> None:
        self._output = directory / "command.out"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKING], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._send(_IMPORTED)

    def __enter__(self) -> Self:
        """Wait for nothing: the first command does."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._process.communicate()

    def ask(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run `sda` with ``words``; both outputs are in ``stdout``."""
        self._send((words, str(self._output)))
        assert self._process.stdout is not None
        code = int(self._process.stdout.readline())
        return subprocess.CompletedProcess(words, code, self._output.read_text(errors="surrogateescape"), "")

    def _send(self, value: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()
