"""The runbook of each alert of Prometheus: a full address, of a section that exists in the documentation."""

import re
from pathlib import Path

import pytest
import yaml

from sda_platform.observability.vitals.evaluation import VITALS
from sda_platform_tests.support.page_anchors import anchors_of

ROOT = Path(__file__).parents[3]
DOCS = "https://git.example.org/sda-platform/blob/main/docs"
"""What people replace by the address at which they read docs/."""
ALERTS = [
    rule for group in yaml.safe_load((ROOT / "monitoring/rules.yml").read_text())["groups"] for rule in group["rules"]
]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: each["alert"])
def test_it_is_a_section_of_the_documentation_by_its_full_address(alert: dict[str, dict[str, str]]) -> None:
    place = alert["annotations"]["runbook_url"]
    assert place.startswith(f"{DOCS}/"), "a relative address is dead in a mailbox or a chat"
    page, _, anchor = place.removeprefix(f"{DOCS}/").partition("#")
    wanted = {vital.name for vital in VITALS} if anchor == "{{ $labels.vital }}" else {anchor} - {""}
    assert wanted <= anchors_of(ROOT / "docs" / page)


@pytest.mark.parametrize("place", ["monitoring/Dockerfile", "compose.yaml", "docs/how-to/watch-the-platform.md"])
def test_where_the_address_is_replaced_it_is_that_of_the_rules(place: str) -> None:
    text = (ROOT / place).read_text()
    assert set(re.findall(r"https://git\.example\.org[^\s,}]*", text)) == {DOCS}


def test_the_image_replaces_it_by_the_address_that_compose_is_given() -> None:
    steps = (ROOT / "monitoring/Dockerfile").read_text().splitlines()
    assert steps.index(f"ARG DOCS={DOCS}") < steps.index(f'RUN sed -i "s,{DOCS},$DOCS," /etc/prometheus/rules.yml')
