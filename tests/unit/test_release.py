"""What a release says of itself in several places, and what it contains of others."""

import re
import tomllib
from pathlib import Path

import farthing as ft

ROOT = Path(__file__).parents[2]
VENDORED = ROOT / "src" / "farthing" / "dashboard" / "static" / "vendor"
EXTRAS = re.compile(r"farthing\[([\w,]+)\]")


def text_of(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def test_every_place_has_the_same_version() -> None:
    assert re.findall(r"^version: (\S+)$", text_of("CITATION.cff"), flags=re.MULTILINE) == [ft.__version__]
    assert re.findall(r"^copyright: Farthing (\S+)", text_of("mkdocs.yml"), flags=re.MULTILINE) == [ft.__version__]
    newest, *_ = re.findall(r"^## (\S+) \(", text_of("CHANGELOG.md"), flags=re.MULTILINE)
    assert newest == ft.__version__


def test_every_vendored_file_is_listed_with_its_version_and_its_licence() -> None:
    listed = text_of("THIRD_PARTY.md")
    names = {path.name for path in VENDORED.iterdir()} - {"SHA256SUMS"}
    assert names
    assert not [name for name in names if name not in listed]
    [version] = re.findall(r"^/\*! .*\(v([\d.]+)\) \*/", (VENDORED / "uPlot.iife.min.js").read_text())
    assert f"{version}, the charts" in listed
    [holder] = re.findall(r"^Copyright \(c\) (.+)$", (VENDORED / "uPlot.LICENSE").read_text(), flags=re.MULTILINE)
    assert holder in listed


def test_an_extra_is_for_users_and_a_page_or_a_message_names_it() -> None:
    """What tests, benchmarks and the documentation need is a group of dependencies: it is not in the package."""
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    places = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {name for path in places for found in EXTRAS.findall(path.read_text()) for name in found.split(",")}
    assert set(extras) <= named


def colours_of(sheet: str, selector: str) -> dict[str, str]:
    """The variables of a sheet of styles that are colours, for everything that the selector has."""
    [block] = re.findall(rf"^{re.escape(selector)} \{{(.*?)^\}}", sheet, flags=re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def test_the_documentation_has_the_colours_of_the_dashboard() -> None:
    dashboard = text_of("src", "farthing", "dashboard", "static", "style.css")
    light, dark = colours_of(dashboard, ":root"), colours_of(dashboard, ':root[data-theme="dark"]')
    docs = text_of("docs", "stylesheets", "farthing.css")
    assert colours_of(docs, ":root") == {
        "md-primary-fg-color": light["link"],
        "md-primary-fg-color--light": light["c2"],
        "md-primary-fg-color--dark": light["shade-high"],
        "md-primary-bg-color": light["card"],
        "md-accent-fg-color": light["accent"],
    }
    assert colours_of(docs, '[data-md-color-scheme="default"]') == {"md-typeset-a-color": light["link"]}
    assert colours_of(docs, '[data-md-color-scheme="slate"]') == {
        "md-primary-fg-color": dark["card"],
        "md-typeset-a-color": dark["link"],
        "md-accent-fg-color": dark["accent"],
    }
    settings = text_of("mkdocs.yml")
    assert re.findall(r"^ +(\w+): custom$", settings, flags=re.MULTILINE) == ["primary", "accent"] * 2
    assert "\nextra_css:\n  - stylesheets/farthing.css\n" in settings
