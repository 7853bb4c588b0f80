"""`sda alert cdm`: the conjunction data message of a current alert, made from its assessment."""

from collections.abc import Iterable

from sda_platform.conjunction.alert_ids import UnknownAlert
from sda_platform.conjunction.alert_messages import assessment_message
from sda_platform.conjunction.data_origins import data_origins
from sda_platform.conjunction.stated_objects import stated_objects
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.formats.cdm import Encoding
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.fleet import ProtectedObject
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.observability.trace import trace_alert


def alert_message(lake: Lake, prefix: str, encoding: Encoding, fleet: Iterable[ProtectedObject] = ()) -> bytes:
    """Return the CDM of the alert whose id begins with ``prefix``; ``fleet`` states which objects can manoeuvre.

    Raises UnknownAlert: there is none or more than one, it was withdrawn, or it was assessed before states were kept.
    """
    story = trace_alert(lake, prefix)
    if not story.assessments:
        raise UnknownAlert(
            f"alert {story.alert_id} is of an event that only received messages have: "
            f"`sda alert trace {story.alert_id[:8]}` names them; we have no states of our own for a message"
        )
    newest = max(story.assessments, key=lambda row: (row["sequence"], row["op"] != INSERT))
    if newest["op"] != INSERT:
        raise UnknownAlert(f"alert {story.alert_id} was withdrawn: it has no current assessment")
    if not newest["state_1"]:
        raise UnknownAlert(f"alert {story.alert_id} was assessed before {CONJUNCTION_ASSESSMENTS.name} kept states")
    objects = stated_objects(lake, [newest], fleet)
    origins = data_origins(lake, [newest])
    message = assessment_message(newest, newest["as_of_ns"], story.acknowledgements, objects, origins)
    return encode_cdm(message, encoding)
