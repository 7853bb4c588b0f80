"""Hooks of MkDocs: add decisions, the changelog and the contributor's page to the site."""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Files at the top of the repository → their pages on the site."""
_LINK = re.compile(r"\]\((?P<target>[^)#:\s]+\.md)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """List every decision in the navigation."""
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{page.name}" for page in pages]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not below docs/."""
    for source, page in ROOT_PAGES.items():
        text_of = (ROOT / source).read_text().replace("](docs/", "](")
        files.append(File.generated(config, page, content=text_of))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files at the top of the repository into links to their pages."""
    here = Path(page.file.src_uri).parent

    def on_site(link: re.Match[str]) -> str:
        name = ROOT_PAGES.get(Path(link["target"]).name)
        if name is None or Path(link["target"]).name == link["target"]:
            return link[0]
        return f"]({os.path.relpath(name, here)}{link['anchor'] or ''})"

    return _LINK.sub(on_site, markdown)
