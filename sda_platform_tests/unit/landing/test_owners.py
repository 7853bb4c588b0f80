"""Which process wrote a note, and whether it has ended: asked of real processes."""

import subprocess
import sys

from sda_platform.landing.owners import Owners

OWN = "from sda_platform.landing.owners import Owners; print(Owners().own(), flush=True); input()"


def test_a_process_at_work_has_not_ended_and_a_killed_one_has__D12() -> None:
    with subprocess.Popen([sys.executable, "-c", OWN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        mark = other.stdout.readline().decode().strip()
        assert not Owners().has_ended(mark)
        other.kill()
    assert Owners().has_ended(mark)


def test_an_earlier_run_of_this_process_has_ended__D12() -> None:
    assert Owners().has_ended(Owners().own())


def test_a_process_of_another_boot_shows_nothing_and_a_reused_process_id_is_another_process__D12() -> None:
    boot, pid, started = Owners().own().split("/")
    assert not Owners().has_ended(f"other-{boot}/999999999/1")
    assert Owners().has_ended(f"{boot}/{pid}/{started}0")
    assert not Owners().has_ended("")
