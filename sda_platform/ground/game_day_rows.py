"""Rows of the table `game_days` from what the landing zone holds."""

from dataclasses import asdict

from sda_platform.ground.tables import GAME_DAY_FEED, GAME_DAYS
from sda_platform.landing.record_rows import record_decoder

decode = record_decoder(GAME_DAYS, GAME_DAY_FEED, asdict)
