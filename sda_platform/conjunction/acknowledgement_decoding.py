"""Segments of acknowledgements as rows of `alert_acknowledgements`."""

from sda_platform.conjunction.tables import ACKNOWLEDGEMENTS_FEED, ALERT_ACKNOWLEDGEMENTS
from sda_platform.landing.record_rows import record_decoder

decode = record_decoder(ALERT_ACKNOWLEDGEMENTS, ACKNOWLEDGEMENTS_FEED, vars)
