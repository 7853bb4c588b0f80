"""Power loss on a real file system, sampled: the platform starts from copies of an ext4 image."""

import pytest

from sda_platform_tests.campaign import ext4, power_loss


def test_what_was_confirmed_survives_a_power_loss_on_ext4_and_the_controls_do_not__spec_97() -> None:
    if reason := ext4.refusal():
        pytest.skip(reason)
    report = power_loss.run(stride=12)
    assert report.is_green, str(report)
    assert report.cases >= 15
