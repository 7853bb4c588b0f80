"""The inputs that the fuzzer kept, at every decoder; `make soak FUZZ=1` searches on from them."""

import re

import pytest

from sda_platform_tests.support.fuzz_targets import CORPUS, TARGETS, corpus, seeds


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_the_corpus_makes_a_decoder_raise(name: str) -> None:
    for each in (*seeds(name), *corpus(name)):
        TARGETS[name](each)


@pytest.mark.parametrize("year", [b"1004", b"1677", b"2262", b"9999"])
def test_an_instant_that_64_bits_cannot_hold_is_an_error_of_its_record(year: bytes) -> None:
    """In 1677 and 2262 time systems differ by which half of the year it is."""
    for name in TARGETS:
        for each in seeds(name):
            TARGETS[name](re.sub(rb"(?<!\d)(19[5-9]|20[0-9])\d(?=[- /:]|\d\d\d\d\d)", year, each))


@pytest.mark.parametrize("value", [b"9e999", b"1e300", b"9" * 400])
def test_a_number_beyond_any_is_an_error_of_its_record(value: bytes) -> None:
    """One number of a file in its turn, up to eight spread over it."""
    for name in TARGETS:
        for each in seeds(name):
            places = list(re.finditer(rb"\d+(\.\d+)?", each))
            for place in places[:: max(1, len(places) // 8)]:
                TARGETS[name](each[: place.start()] + value + each[place.end() :])


@pytest.mark.parametrize(
    "options",
    [
        b'"comment":{}',
        b'"comment":"\\ud800"',
        b'"comment":7',
        b'"skip_lines":1e999',
        b'"skip_lines":1e15',
        b'"header":{}',
    ],
)
def test_a_mapping_of_other_types_is_an_error_of_its_record(options: bytes) -> None:
    (sound,) = seeds("mapped-csv")
    name = options.partition(b":")[0]
    changed = re.sub(name + rb':("[^"]*"|\w+)', lambda _: options, sound)
    assert changed != sound
    TARGETS["mapped-csv"](changed)


def test_the_corpus_has_a_file_for_each_target() -> None:
    assert {path.stem for path in CORPUS.glob("*.zip")} == set(TARGETS)
