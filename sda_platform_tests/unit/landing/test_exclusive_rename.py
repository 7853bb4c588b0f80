"""A rename that replaces nothing."""

import errno
from pathlib import Path

import pytest

from sda_platform.landing import exclusive_rename
from sda_platform.landing.exclusive_rename import rename_new


@pytest.fixture(params=["the call", "no call"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no call":
        monkeypatch.setattr(exclusive_rename, "_renamed_in_one_step", lambda *_names: errno.ENOSYS)


@pytest.mark.usefixtures("either_way")
def test_a_free_name_is_taken_and_a_taken_one_is_left(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    assert rename_new(str(one), str(other))
    assert (one.exists(), other.read_bytes()) == (False, b"1")
    one.write_bytes(b"2")
    assert not rename_new(str(one), str(other))
    assert (one.read_bytes(), other.read_bytes()) == (b"2", b"1")
    assert not rename_new(str(tmp_path / "missing"), str(tmp_path / "new"))


@pytest.mark.usefixtures("either_way")
def test_what_the_file_system_refuses_is_an_error_with_both_names(tmp_path: Path) -> None:
    source, target = tmp_path / "one", tmp_path / "file" / "below"
    source.write_bytes(b"1")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match=r"one.*below"):
        rename_new(str(source), str(target))


def test_this_machine_has_the_call(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    if (number := exclusive_rename._renamed_in_one_step(str(tmp_path / "one"), str(tmp_path / "two"))) == errno.ENOSYS:
        pytest.skip("the C library has no renameat2")
    assert number == 0
