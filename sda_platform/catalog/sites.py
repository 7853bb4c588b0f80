"""The sites that may edit the catalogue: the key of each, and the signatures of edits.

    [sites.north]
    key = "north.pub"    # a public key in PEM (`sda catalog site-key`), beside this file

Where a file names sites, each edit that lands is signed by its site; any other is a dead letter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field

from sda_platform.formats.edits import Edit
from sda_platform.formats.errors import ErrorKind
from sda_platform.signing_keys import is_signed_by, private_key, public_key, raw_key
from sda_platform.toml_file import read_toml, require_own

SiteKeys = Mapping[str, str]
"""The public key of each site, 32 bytes in hexadecimal; empty: edits need no signature."""
BAD_SIGNATURE: Final[ErrorKind] = "bad_signature"
"""The kind of error of an edit that is not signed by its site."""


class SitesError(ValueError):
    """The file of sites, or the site's own key, cannot be used; the text names the file and the reason."""


class _Site(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str = Field(min_length=1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    sites: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")], _Site] = Field(min_length=1)


def read_sites(path: Path) -> dict[str, str]:
    """Read the keys of the file at ``path``. Raises SitesError, UnusableKey and OSError."""
    sites = read_toml(path, _File, SitesError).sites
    require_own(path, SitesError)
    places = {name: path.parent / site.key for name, site in sites.items()}
    return {name: raw_key(public_key(place.read_bytes(), str(place))).hex() for name, place in places.items()}


def site_keys(sites: str) -> dict[str, str]:
    """Read the keys of the file ``sites``; none where it is empty. Raises as `read_sites`."""
    return read_sites(Path(sites)) if sites else {}


def refusal(edit: Edit, keys: SiteKeys) -> str | None:
    """Return why an edit is not taken; None: it is signed by its site, or needs no signature."""
    if not keys:
        return None
    if edit.origin not in keys:
        return f"site {edit.origin} is not in SDA_SITES: add its key, if it may edit this catalogue"
    if not edit.signature:
        return f"it is not signed: site {edit.origin} must set SDA_SITE_KEY, and edit again"
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(keys[edit.origin]))
    if not is_signed_by(key, bytes.fromhex(edit.signature), edit.signed_text):
        return f"its signature is not that of site {edit.origin}: it was changed, or another one made it"
    return None


@dataclass(frozen=True)
class EditingSite:
    """This site as an editor: its name, its key if it has one, and the keys of all."""

    name: str
    key: Ed25519PrivateKey | None = None
    keys: SiteKeys = field(default_factory=dict)

    def signed(self, edit: Edit) -> Edit:
        """Return ``edit`` with this site's signature. Raises SitesError where the sites would refuse it."""
        made = edit if self.key is None else replace(edit, signature=self.key.sign(edit.signed_text).hex())
        if (reason := refusal(made, self.keys)) is not None:
            raise SitesError(f"this edit would be refused: {reason}")
        return made


def editing_site(name: str, own_key: str, sites: str) -> EditingSite:
    """Return the site ``name`` with its key in the file ``own_key`` and those of the file ``sites``, where given.

    Raises SitesError, UnusableKey and OSError.
    """
    return EditingSite(name, private_key(Path(own_key)) if own_key else None, site_keys(sites))
