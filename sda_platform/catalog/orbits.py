"""The catalogue as the physics wants it: a propagator over all objects, as of one version of the table."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator


@dataclass(frozen=True)
class Catalogue:
    """All objects at one version; ``propagator`` pickles small and is rebuilt once per worker process."""

    propagator: Propagator
    object_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.propagator)

    @property
    def norad_id(self) -> npt.NDArray[np.int64]:
        """Catalogue numbers, ascending; their positions are the propagator's rows."""
        return self.propagator.elements.norad_id

    def positions(self, norad_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Rows of those of ``norad_ids`` that are in the catalogue."""
        wanted = np.unique(np.asarray(norad_ids, dtype=np.int64))
        return np.flatnonzero(np.isin(self.norad_id, wanted))


def catalogue_at(store: Lake, version: int) -> Catalogue:
    """The catalogue as of a version of its table, ordered by catalogue number."""
    rows = store.log(ORBITAL_CATALOG).rows([*ELEMENT_COLUMNS, "object_name"], version=version).sort_by("norad_id")
    names = tuple(name or "" for name in rows.column("object_name").to_pylist())
    return Catalogue(Propagator(ElementSets.from_columns(arrays(rows, ELEMENT_COLUMNS))), names)
