"""What settings are made of: a field that an environment variable sets, and a section of such fields."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

PREFIX: Final = "SDA_"
VARIABLE: Final = "variable"
IS_FILE: Final = "is_file"
SHOWN_DEFAULT: Final = "shown_default"
OTHER_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SDA_COLLECT_TOKEN": "the token that `sda collector status` sends to the collector",
        "SDA_DAGSTER_POSTGRES_URL": "Dagster's storage; `dagster.yaml` reads it",
        "SDA_PLATFORM_ID": "the mark of a running platform's processes",
    }
)
"""Variables with the prefix that are no settings, and what they are for."""


def setting(
    default: Any, description: str, variable: str, *, is_file: bool = False, shown_default: str = "", **constraints: Any
) -> Any:
    """A field that the environment variable ``SDA_<variable>`` sets.

    ``is_file``: it may be a path on this machine. ``shown_default``: the documented default, where machines differ.
    """
    facts: dict[str, Any] = {VARIABLE: PREFIX + variable, IS_FILE: is_file, SHOWN_DEFAULT: shown_default}
    return Field(default, description=description, json_schema_extra=facts, **constraints)


class SettingsSection(BaseModel):
    """Settings of one subject."""

    model_config = ConfigDict(extra="forbid")
