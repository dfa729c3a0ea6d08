"""The files that pages are made of: nothing inline, nothing from elsewhere, all there."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from backend.web.assets import read_static_files
from backend.web.templates import static_files

WEB = Path(str(files("backend.web")))
TEMPLATES = sorted((WEB / "templates").glob("*.html"))
SCRIPTS = sorted((WEB / "static").glob("*.js"))
SHEETS = sorted((WEB / "static").glob("*.css"))


def _name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", TEMPLATES, ids=_name)
def test_a_template_has_no_script_or_style_of_its_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert not re.search(r"\|\s*safe\b|autoescape false|Markup", text)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=_name)
def test_a_script_makes_no_markup_from_texts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    assert not re.search(r"https?://", text)
    for imported in re.findall(r'from "\./([^"]+)"', text):
        assert imported in static_files().files


@pytest.mark.parametrize("path", SHEETS, ids=_name)
def test_a_sheet_loads_nothing(path: Path) -> None:
    assert not re.search(r"url\(|@import", path.read_text(encoding="utf-8"))


def test_every_file_is_served_under_the_version_of_all() -> None:
    kept = static_files()
    assert kept.version != read_static_files().version, "without the sentences of other languages"
    assert json.loads(kept.files["sentences-zh.json"].content)["Not Found"] == "未找到"
    assert {path.name for path in (*SCRIPTS, *SHEETS)} < set(kept.files)
    assert kept.url("base.css") == f"/static/{kept.version}/base.css"
    assert kept.files["base.css"].media_type.startswith("text/css")
    with pytest.raises(ValueError, match="no such file"):
        kept.url("missing.css")
