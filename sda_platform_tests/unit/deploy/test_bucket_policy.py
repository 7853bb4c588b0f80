"""The bucket policy: the rights that the documentation lists, on the platform's own objects, and by TLS only."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
STATEMENTS = {each["Sid"]: each for each in json.loads((ROOT / "deploy/bucket-policy.json").read_text())["Statement"]}
PAGE = (ROOT / "docs/how-to/move-to-a-cluster.md").read_text()


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def test_it_grants_the_rights_that_the_page_lists_and_no_other() -> None:
    granted = {right for each in STATEMENTS.values() if each["Effect"] == "Allow" for right in listed(each["Action"])}
    table = PAGE.partition("| Right | On | For |")[2].partition("\n\n")[0]
    assert granted == set(re.findall(r"`(s3:\w+)`", table))


def test_the_platform_has_rights_on_lake_and_landing_zones_and_a_collector_on_landing_zones() -> None:
    objects = {"PlatformReadsAndWrites": {"lake", "landing"}, "CollectorSeals": {"landing"}}
    for sid, places in objects.items():
        resources = listed(STATEMENTS[sid]["Resource"])
        assert {resource.removeprefix("arn:aws:s3:::bucket/").removesuffix("/*") for resource in resources} == places
    listings = {"PlatformLists": {"lake", "landing"}, "CollectorLists": {"landing"}}
    for sid, places in listings.items():
        assert STATEMENTS[sid]["Resource"] == "arn:aws:s3:::bucket"
        prefixes = STATEMENTS[sid]["Condition"]["StringLike"]["s3:prefix"]
        assert set(prefixes) == {place + end for place in places for end in ("", "/*")}


def test_nobody_without_tls() -> None:
    refusal = STATEMENTS["OnlyByTls"]
    assert (refusal["Effect"], refusal["Principal"], refusal["Action"]) == ("Deny", "*", "s3:*")
    assert refusal["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
