"""A planted bug of reads of the station state, for tests that must find it."""

from sda_platform.ground.read_routing import ReadMode, ReadSession
from sda_platform.ground.station_state import StationState


class PositionBeforeAnswer(StationState):
    """A planted bug: a session advances by the position of an earlier statement than the one that answers."""

    def read(self, key: str, mode: ReadMode, session: ReadSession) -> tuple[str | None, str]:
        known = {each.name: each.position for each in self.statuses()}
        copy = ReadSession(session.written, session.read)
        value, name = super().read(key, mode, copy)
        session.has_read(min(known.get(name, 0), copy.read))
        return value, name
