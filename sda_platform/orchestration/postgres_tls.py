"""TLS to PostgreSQL servers, by the parameters of their addresses as libpq names them.

Beyond this machine a connection has TLS and the server is verified, unless its address says otherwise.
"""

import ssl
from typing import Final
from urllib.parse import parse_qsl

from sda_platform.edge.address import Address
from sda_platform.lake.errors import Misconfigured

_VERIFIED, _PLAIN = "verify-full", "disable"
_SSL_MODES: Final = (_PLAIN, "require", "verify-ca", _VERIFIED)
_ROOTS: Final = "sslrootcert"


def tls_of(host: str, query: str, variable: str) -> ssl.SSLContext | None:
    """Return how a server at ``host`` is verified, by the ``query`` of its address; None: without TLS.

    Raises Misconfigured, which names the setting ``variable``, for another parameter or mode, or an unusable file.
    """
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(parameters.keys() - {"sslmode", _ROOTS}):
        raise Misconfigured(f"{variable}: no parameter is named {unknown[0]!r}; there are sslmode and {_ROOTS}")
    mode = parameters.get("sslmode", _PLAIN if Address(host, 0).is_loopback else _VERIFIED)
    if mode not in _SSL_MODES:
        raise Misconfigured(f"{variable}: sslmode is {mode!r}, must be one of {', '.join(_SSL_MODES)}")
    if mode == _PLAIN:
        return None
    try:
        context = ssl.create_default_context(cafile=parameters.get(_ROOTS) or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise Misconfigured(f"{variable}: {parameters.get(_ROOTS)} cannot be used: {reason}") from None
    context.check_hostname = mode != "verify-ca"
    return context
