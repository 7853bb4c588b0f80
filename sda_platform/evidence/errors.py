"""Failures of evidence bundles that a person can correct."""


class EvidenceError(ValueError):
    """A bundle cannot be made or read; the text names the file and the reason."""
