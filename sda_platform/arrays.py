"""The kinds of arrays that signatures name; docstrings give their shapes and units."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TextArray = npt.NDArray[np.str_]
ErrorArray = npt.NDArray[np.uint8]
"""0, or a key of SGP4's errors."""
