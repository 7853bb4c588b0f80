"""The example of docs/reference/webhook.md that verifies a signature, as a function."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs/reference/webhook.md"


def is_signed(headers: Mapping[str, str], body: bytes, keys: Mapping[str, bytes], now_s: float) -> bool:
    """What the page's example answers."""
    return bool(_example()(headers, body, keys, now_s))


def _example() -> Callable[..., Any]:
    (code,) = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(_PAGE), "exec"), names)
    found: Callable[..., Any] = names["is_signed"]
    return found
