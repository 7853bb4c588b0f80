"""Files in TOML that a person writes, read into a model; what is wrong with one names the file and the option."""

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], error: type[Exception]) -> Model:
    """Return the file at ``path`` as ``model``. Raises ``error`` with the file and the reason."""
    try:
        return model.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path}: is no TOML: {problem}") from None
    except ValidationError as problem:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problem.errors())
        raise error(f"{path}: {wrong}") from None
