"""Files in TOML that a person writes, read into a model; what is wrong with one names the file and the option."""

import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from sda_platform.refused_values import refusal_text
from sda_platform.whole_files import replace_content

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], error: type[Exception]) -> Model:
    """Return the file at ``path`` as ``model``. Raises ``error`` with the file and the reason."""
    return _parsed(path, _text(path, error), model, error)


def edit_toml(
    path: Path, change: Callable[["TOMLDocument"], None], model: type[BaseModel], error: type[Exception]
) -> None:
    """Let ``change`` alter the file at ``path``, or begin it; comments and the order of what it has stay.

    Raises ``error`` where the file is no ``model``, before or after: then it stays as it was.
    """
    import tomlkit  # which those who only read do without
    from tomlkit.exceptions import TOMLKitError

    text = _text(path, error) if path.exists() else ""
    if text:
        _parsed(path, text, model, error)
    document = tomlkit.parse(text)
    try:
        change(document)
    except TOMLKitError as problem:
        raise error(f"{path}: {problem}") from None
    changed = tomlkit.dumps(document)
    _parsed(path, changed, model, error)
    replace_content(path, changed)


def subtables(document: "TOMLDocument", name: str) -> Any:
    """Return the table of tables ``name`` of a document; a new one has no heading of its own."""
    import tomlkit

    return document.setdefault(name, tomlkit.table(is_super_table=True))


def _text(path: Path, error: type[Exception]) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise error(f"{path}: is no TOML: {problem}") from None


def _parsed(path: Path, text: str, model: type[Model], error: type[Exception]) -> Model:
    try:
        return model.model_validate(tomllib.loads(text))
    except ValidationError as problem:
        raise error(f"{path}: {refusal_text(problem)}") from None
    except (ValueError, RecursionError) as problem:  # also for a number of thousands of digits, and deep nesting
        raise error(f"{path}: is no TOML: {problem}") from None


def state_of(path: Path) -> tuple[int, ...] | None:
    """Return what differs when a file has changed: time of change, size, inode, and who may write it; None: it cannot
    be found.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode, found.st_uid


def require_own(path: Path, error: type[Exception]) -> None:
    """Raise ``error`` where others than its user may write the file at ``path``."""
    if (mode := path.stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        raise error(f"{path}: others may write it (mode {stat.S_IMODE(mode):04o}): chmod go-w {path}")
