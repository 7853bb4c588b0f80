"""The error that stops a start or a running platform."""


class PlatformError(RuntimeError):
    """The platform cannot start or continue; the text gives the user the reason."""
