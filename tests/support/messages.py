"""The messages that the pages show, as their templates and scripts name them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from jinja2 import Environment, nodes

from backend.web.catalogs import SCRIPT

WEB = Path(__file__).parents[2] / "backend" / "web"
TEMPLATES = WEB / "templates"
SCRIPTS = WEB / "static"

Message: TypeAlias = tuple[str | None, str | tuple[str, str]]
"""The context, and the English: in the singular and the plural where it has both."""

_PLURAL_IN_SCRIPTS = re.compile(r'\bpluralize\(\s*[\w.]+,\s*"([^"]*)",\s*"([^"]*)"')
_IN_SCRIPTS = re.compile(r'\btranslate\(\s*"((?:[^"\\]|\\.)*)"')


def messages() -> set[Message]:
    return {*_of_templates(), *_of_scripts()}


def _of_templates() -> Iterator[Message]:
    environment = Environment(extensions=["jinja2.ext.i18n"])
    environment.policies["ext.i18n.trimmed"] = True
    # The extension adds this to the environment, which its types do not say.
    extract = vars(environment)["extract_translations"]
    for path in sorted(TEMPLATES.glob("*.html")):
        source = path.read_text(encoding="utf-8")
        for _, _, found in extract(source):
            yield None, _texts(found)
        for each in environment.parse(source).find_all(nodes.Filter):
            if each.name == "counted":
                yield None, _counted(*(arg.as_const() for arg in each.args))


def _texts(found: str | tuple[str | None, ...]) -> str | tuple[str, str]:
    """Return a message without the values that it is called with, which are None."""
    match [text for text in ((found,) if isinstance(found, str) else found) if text is not None]:
        case [text]:
            return text
        case [one, many]:
            return one, many
        case _:
            raise ValueError(f"not a message: {found}")


def _counted(noun: str, plural: str | None = None) -> tuple[str, str]:
    return f"%(number)s {noun}", f"%(number)s {plural or f'{noun}s'}"


def _of_scripts() -> Iterator[Message]:
    for path in sorted(SCRIPTS.glob("*.js")):
        source = path.read_text(encoding="utf-8")
        for found in _IN_SCRIPTS.finditer(source):
            yield SCRIPT, found[1].replace('\\"', '"')
        for found in _PLURAL_IN_SCRIPTS.finditer(source):
            yield SCRIPT, (found[1], found[2])
