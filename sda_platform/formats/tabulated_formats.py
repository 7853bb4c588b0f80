"""Formats of ephemerides that are tables, beside the messages of CCSDS: read, and converted to an OEM."""

import re
from typing import Final

from sda_platform.formats import cpf_ephemeris, meme_ephemeris, sp3_ephemeris, stk_ephemeris
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.framing.documents import documents

# Comments before a file, such as its name, are its own; only so many are looked at, since any line may be one.
_NAMED: Final = rb"^(?:#[^\n]*\n\s*){0,20}"
TABULATED_FORMATS: Final = (
    RecordFormat(
        name="stk-ephemeris",
        title="Ephemeris of STK (.e)",
        content="ephemeris",
        zone="ephemerides",
        suffixes=(".e",),
        framing=documents(
            re.compile(_NAMED + rb"stk\.v\.", re.MULTILINE | re.IGNORECASE),
            re.compile(rb"END\s+Ephemeris\Z", re.IGNORECASE),
        ),
        begins=stk_ephemeris.BEGINS,
        read=stk_ephemeris.read_stk_ephemeris,
        is_named=True,
    ),
    RecordFormat(
        name="meme-ephemeris",
        title="Ephemeris of an operator as Space-Track exchanges it (MEME, modified ITC)",
        content="ephemeris",
        zone="ephemerides",
        suffixes=(".meme", ".txt"),
        framing=documents(re.compile(_NAMED + rb"created:", re.MULTILINE), re.compile(rb"(?:^|\n)[^\n]*[0-9][ \t]*\Z")),
        begins=meme_ephemeris.BEGINS,
        read=meme_ephemeris.read_meme_ephemeris,
        is_named=True,
    ),
    RecordFormat(
        name="cpf",
        title="Predictions for laser ranging (ILRS CPF 1 and 2)",
        content="ephemeris",
        zone="ephemerides",
        suffixes=(".cpf", ".txt"),
        framing=documents(cpf_ephemeris.BEGINS, re.compile(rb"(?:^|\n)99[^\n]*\Z")),
        begins=cpf_ephemeris.BEGINS,
        read=cpf_ephemeris.read_cpf,
    ),
    RecordFormat(
        name="sp3",
        title="Precise orbits of the IGS and ILRS (SP3-c, SP3-d)",
        content="ephemeris",
        zone="ephemerides",
        suffixes=(".sp3",),
        framing=documents(sp3_ephemeris.BEGINS_A_FILE, re.compile(rb"(?:^|\n)EOF\Z"), sp3_ephemeris.split_sp3),
        begins=sp3_ephemeris.BEGINS,
        read=sp3_ephemeris.read_sp3,
        is_named=True,
    ),
)
