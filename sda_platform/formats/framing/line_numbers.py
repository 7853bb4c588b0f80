"""Line numbers of positions in a text, in one pass over it."""


class LineNumbers:
    """The numbers of the lines of ``data``, the first of which is ``first``; positions must ascend."""

    def __init__(self, data: bytes, first: int = 1) -> None:
        self._data = data
        self._line, self._counted = first, 0

    def at(self, position: int) -> int:
        """Return the number of the line on which the byte at ``position`` is. Raises ValueError for one before the
        last.
        """
        if position < self._counted:
            raise ValueError(f"position {position} is before {self._counted}, up to which lines are counted")
        self._line += self._data.count(b"\n", self._counted, position)
        self._counted = position
        return self._line
