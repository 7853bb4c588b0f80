"""What can be wrong with a serving index; the text names the place, the reason and the remedy."""


class ServingError(Exception):
    """Base of the errors of the serving index and its endpoint."""


class DamagedIndex(ServingError):
    """A stored value is not what was written; the index must be rebuilt from the catalogue."""


class IndexMismatch(ServingError):
    """The index holds another version of the catalogue than the requested one, or none."""


class AlreadyServed(ServingError):
    """Another process serves the catalogue of this home."""
