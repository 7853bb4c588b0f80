"""The runbook states of every kind of dead letter what the platform's own classification states (DP5-O4).

``python -m sda_platform_tests.unit.test_runbook`` writes the classification into docs/how-to/dead-letters.md.
"""

from pathlib import Path

from sda_platform.orchestration.dispositions import RECORD_KINDS

RUNBOOK = Path(__file__).parents[2] / "docs/how-to/dead-letters.md"
_HEADING = "## Each kind, with cause and remedy\n"


def rendered() -> str:
    """The kinds as the runbook has them."""
    parts = []
    for kind, entry in RECORD_KINDS.items():
        parts.append(
            f"\n### {kind}\n\n{entry.meaning} *{entry.disposition.value.capitalize()}.*\n\n"
            f"- **Hypothesis:** {entry.hypothesis}\n"
            f"- **Validate:** {entry.validation}\n"
            f"- **Fix:** {entry.fix}\n"
            f"- **Reprocess:** {entry.reprocess}\n"
        )
    return "".join(parts)


def test_the_runbook_says_what_the_classification_says__DP5_O4() -> None:
    _, _, kinds = RUNBOOK.read_text().partition(_HEADING)
    assert kinds == rendered(), "run python -m sda_platform_tests.unit.test_runbook"


if __name__ == "__main__":
    intro, _, _ = RUNBOOK.read_text().partition(_HEADING)
    RUNBOOK.write_text(intro + _HEADING + rendered())
