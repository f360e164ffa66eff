"""Makes the links of the README absolute in the metadata of a package, because PyPI shows it without the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)([^)]+\))")
"""A picture or a link, its text, and an address that names no scheme and no place on the same page."""


def with_absolute_links(readme: str, *, source: str, version: str) -> str:
    """Links show the files of this version, pictures are those files."""

    def absolute(link: re.Match[str]) -> str:
        picture, text, path = link.groups()
        return f"{picture}{text}{source}/{'raw' if picture else 'blob'}/v{version}/{path}"

    return RELATIVE.sub(absolute, readme)


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(readme, source=metadata["urls"]["Source"], version=metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
