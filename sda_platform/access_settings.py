"""Settings of who may reach the platform, and how it proves to others that it is the platform."""

from sda_platform.setting_fields import SettingsSection, setting


class SitesFile(SettingsSection):
    """The sites that may edit the catalogue."""

    sites: str = setting(
        "",
        "Public keys of the sites that may edit the catalogue (TOML); empty: edits need no signature.",
        "SITES",
        is_file=True,
    )


class AccessSettings(SitesFile):
    """Keys and permissions."""

    site_key: str = setting(
        "",
        "Private key of this site (PEM, mode 0600) that signs its edits; empty: they are not signed.",
        "SITE_KEY",
        is_file=True,
        repr=False,
    )

    subscriber_keys: str = setting(
        "",
        "Keys that sign the requests to a webhook in SDA_SUBSCRIBER, as id:whsec_<base64>, or the "
        "absolute path of a file of mode 0600 with them; empty: none.",
        "SUBSCRIBER_KEYS",
        repr=False,
    )
    notice_keys: str = setting(
        "", "The same for the requests to the webhooks of notices, with keys of their own.", "NOTICE_KEYS", repr=False
    )
    commanders: str = setting(
        "",
        "Who may command stations: keys and rights (TOML); empty: anyone who may write to the landing zone.",
        "COMMANDERS",
        is_file=True,
    )
    commander_key: str = setting(
        "",
        "Private key (PEM, mode 0600) of who issues or confirms commands; empty: they are not signed.",
        "COMMANDER_KEY",
        is_file=True,
        repr=False,
    )
    station_keys: str = setting(
        "",
        "Keys that sign the messages between uplinks and the simulated station, as those of SDA_SUBSCRIBER_KEYS. An "
        "uplink signs with the first one, a station accepts all; empty: messages are not signed.",
        "STATION_KEYS",
        repr=False,
    )
    plain_http: bool = setting(
        False,
        "Whether webhooks of other machines may be reached without TLS, on a trusted network.",
        "WEBHOOK_PLAIN_HTTP",
    )
    webserver_writes: bool = setting(
        False,
        "Whether the UI may change anything where it listens beyond loopback, behind a login.",
        "WEBSERVER_WRITES",
    )
    webserver_users: str = setting(
        "",
        "Users of the UI with their roles (TOML), made by `sda user`; empty: it has no login.",
        "WEBSERVER_USERS",
        is_file=True,
    )
    umask: str = setting(
        "077",
        "Permissions that files of the platform do not have (octal): 077 for its user alone, 027 also for its group.",
        "UMASK",
        pattern=r"^0?[0-7]{3}$",
    )
