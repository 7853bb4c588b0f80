"""Whether an engine compiles the statements of a session or interprets them.

Delta plans queries of its own for each commit. For a commit of few rows, the code that Spark generates for them is
never worth its compilation: interpreted, such a commit takes a sixth less processor time. Many rows need the code.
"""

from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_WHOLE_STAGE, _FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"
INTERPRETED: Final = {_WHOLE_STAGE: "false", _FACTORY: "NO_CODEGEN"}
COMPILED: Final = {_WHOLE_STAGE: "true", _FACTORY: "FALLBACK"}

# By session what was chosen last: a setting costs a call to the engine.
_chosen: WeakKeyDictionary[SparkSession, Mapping[str, str]] = WeakKeyDictionary()


def choose(session: SparkSession, way: Mapping[str, str]) -> SparkSession:
    """``session``, whose next statements are handled in this ``way``: `INTERPRETED` or `COMPILED`."""
    if _chosen.get(session) is not way:
        for name, value in way.items():
            session.conf.set(name, value)
        _chosen[session] = way
    return session
