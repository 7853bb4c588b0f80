"""The colours of an alert's levels on every page and in every picture."""

from typing import Final

LEVEL_COLOURS: Final = {"red": "#c62828", "yellow": "#f9a825", "green": "#2e7d32"}
"""By level; legible in print, and apart for most forms of colour blindness with the level's name beside it."""
ALERT_LEVELS: Final = ("red", "yellow")
"""The levels that an alert may have."""
