"""Settings of messages to people about alerts."""

from sda_platform.setting_fields import SettingsSection, setting


class NotifySettings(SettingsSection):
    """Messages to people about alerts."""

    rules: str = setting(
        "",
        "Rules and channels by which people are notified of alerts (TOML); empty: <home>/notify.toml, if it is there.",
        "NOTIFY",
        is_file=True,
    )
    lag_s: float = setting(
        120.0, "Longest time for which a message to people may wait for its channel, seconds.", "NOTIFY_LAG_S", ge=0
    )
