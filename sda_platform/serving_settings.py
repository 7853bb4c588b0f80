"""Settings of the catalogue's lookup endpoint: where it listens, who reads, and the stream that gets its events."""

from sda_platform.setting_fields import SettingsSection, setting


class ServingSettings(SettingsSection):
    """How the catalogue is served."""

    with_platform: bool = setting(
        True, "Whether `sda up` serves the catalogue, as `sda catalog serve` does.", "SERVING"
    )
    host: str = setting("127.0.0.1", "Address at which the catalogue is served.", "SERVING_HOST")
    port: int = setting(
        3100, "Port of the catalogue's lookup endpoint; if it is busy, `sda up` uses a free one.", "SERVING_PORT"
    )
    clients: str = setting(
        "",
        "Clients of the served catalogue, and whether reading needs a login (TOML); empty: none.",
        "SERVING_CLIENTS",
        is_file=True,
    )
    open: bool = setting(
        False,
        "Whether everyone may read the catalogue without a login where it listens beyond loopback.",
        "SERVING_OPEN",
    )
    certificate: str = setting(
        "",
        "Certificate of the catalogue's endpoint, with its chain (PEM); with it and its key the endpoint speaks TLS.",
        "SERVING_CERTIFICATE",
        is_file=True,
    )
    key: str = setting("", "Private key of that certificate (PEM).", "SERVING_KEY", is_file=True, repr=False)
    groups: str = setting("", "Own groups of objects (TOML).", "SERVING_GROUPS", is_file=True)
    event_stream: str = setting(
        "",
        "Server of NATS that gets each event into the stream SDA: nats://user:password@host:4222, tls://… beyond this "
        "machine; empty: none.",
        "EVENT_STREAM",
        repr=False,  # it may hold a password
    )
    event_stream_credentials: str = setting(
        "", "File of credentials of the same (mode 0600); empty: none.", "EVENT_STREAM_CREDENTIALS", is_file=True
    )
