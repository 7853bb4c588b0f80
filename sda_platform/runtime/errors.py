"""The errors that stop a start or a running platform."""


class PlatformError(RuntimeError):
    """The platform cannot start or continue; the text gives the user the reason."""


class EngineCold(PlatformError):
    """The engine did not execute the statements of its warm-up."""
