"""Logs of the collector: one JSON object a line, one line per event in the life of a source, none per record."""

import json
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import Any, TextIO

from sda_platform.clock import iso


@dataclass
class Log:
    """Writes events to ``stream``; ``facts`` are in every line."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    facts: dict[str, Any] = field(default_factory=dict)

    def bind(self, **facts: Any) -> "Log":
        """Return the same log with more facts in every line."""
        return Log(self.stream, {**self.facts, **facts})

    def info(self, event: str, **facts: Any) -> None:
        """Something happened that is as it should be."""
        self._write("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Something happened that the collector deals with."""
        self._write("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Something happened that a person must deal with."""
        self._write("error", event, facts)

    def fault(self, event: str, error: BaseException, **facts: Any) -> None:
        """A fault of the program, with its traceback."""
        text = "".join(traceback.format_exception(error))
        self._write("error", event, {**facts, "reason": f"{type(error).__name__}: {error}", "traceback": text})

    def _write(self, level: str, event: str, facts: dict[str, Any]) -> None:
        line = {"time": iso(time.time_ns()), "level": level, "event": event, **self.facts, **facts}
        self.stream.write(json.dumps(line, default=str) + "\n")
        self.stream.flush()
