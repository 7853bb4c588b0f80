"""The fault campaign: every tier is a function ``run(repeats, seed) -> Report``; see `report`."""
