"""Adding a channel and its rule to `notify.toml`, with its address in a file of its user alone."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from sda_platform.lake.errors import Misconfigured
from sda_platform.notification.channels import send, service_of
from sda_platform.notification.message import trial_message
from sda_platform.notification.notify_file import CHANNEL_NAME, ChannelEntry, NotifyFile
from sda_platform.private_home import write_private
from sda_platform.toml_file import edit_toml, subtables


def add_channel(
    path: Path,
    name: str,
    address: str,
    rule: Mapping[str, Any],
    *,
    console: str = "",
    is_tested: bool = True,
    is_plain_allowed: bool = False,
) -> Path:
    """Add a channel with one rule to the file at ``path``, or begin it. Returns the file of the address.

    ``rule`` has the options of a rule as a person writes them, without name and channels. ``is_tested``: only if the
    channel takes a test message. Raises Misconfigured with the reason, OSError; then nothing was added.
    """
    if not re.fullmatch(CHANNEL_NAME, name):
        raise Misconfigured(f"{name!r} is no name of a channel: letters, digits, - and _")
    service_of(name, address, is_plain_allowed=is_plain_allowed)  # refuses an address that cannot be used
    secret = path.with_name(f"channel-{name}.url")

    def add(document: tomlkit.TOMLDocument) -> None:
        if console:
            document["console"] = console
        channels = subtables(document, "channels")
        if name in channels:
            raise Misconfigured(f"{path}: there is a channel {name!r} already")
        channels[name] = {"url_file": str(secret)}
        channels[name].add(tomlkit.nl())  # before what follows
        added = tomlkit.table()
        added.update({"name": f"alerts to {name}", "channels": [name], **rule})
        added.add(tomlkit.nl())
        document.setdefault("rules", tomlkit.aot()).append(added)

    try:
        write_private(secret, address.encode() + b"\n")
    except FileExistsError:
        raise Misconfigured(f"{secret}: there is a file already; choose another name, or remove it") from None
    try:
        entry = ChannelEntry(url_file=str(secret))
        if is_tested and (problem := send(name, entry, trial_message(), is_plain_allowed=is_plain_allowed)):
            raise Misconfigured(
                f"channel {name}: it did not take a test message, so nothing was added: {problem.reason}"
            )
        edit_toml(path, add, NotifyFile, Misconfigured)
    except BaseException:  # also Ctrl-C, and a full disk
        secret.unlink()
        raise
    return secret
