"""What the angles of a ground sensor refer to: their frame, and which effects on the ray are still in them.

Records, the list of sensors and the table `observations` state it in columns of these names. One that a record does
not state is that of its sensor in the list. One that neither states is the first of its values.
"""

from typing import Final

ANGLE_REFERENCES: Final = {
    "angle_frame": ("TEME", "TOD", "EME2000", "ICRF", "GCRF"),
    "angle_aberration": ("corrected", "annual", "diurnal"),
    "angle_refraction": ("corrected", "included"),
}
"""Column and its values.

`angle_frame`: axes of right ascension and declination; TEME and TOD are of date, EME2000 is J2000.
`angle_aberration`: what is still to be corrected. `annual`: reduced against catalogue places of stars, which lack the
annual aberration that the telescope sees. `diurnal`: as the telescope points, or reduced against apparent places.
`angle_refraction`: whether elevations (of a radar, ranges too) contain the effect of the air.
"""
