"""Every text of the pages goes through the catalogs, and every message is translated."""

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from babel.messages.catalog import Message as CatalogMessage
from jinja2 import Environment, nodes

from backend.store.files.file_source import FILES_SOURCE
from backend.web.catalogs import SCRIPT, SENTENCE, load_messages, read_catalog
from backend.web.pages.web_search_pages import build_provider_form
from backend.web.source_forms import Field, build_form, list_kinds
from backend.web_search.providers.registry import PROVIDER_KINDS
from tests.support.messages import TEMPLATES, messages

ROOT = Path(__file__).parents[4]
# Names of formats and of keys, the name of the product, an example.
_UNTRANSLATABLE = re.compile(r"Quarry|CSV|JSON|JSON lines|Ctrl|Enter|Esc|Shift|Alt|N|L|F2|Del|Q")
_PLACEHOLDER = re.compile(r"%\(\w+\)s")
_IN_SCRIPT = re.compile(r"\{\w+\}")
_TAG = re.compile(r"<[^<>]*>")
_UNSEEN = re.compile(r"<!doctype html>|<svg.*?</svg>|<code>.*?</code>|<[^<>]*>", re.DOTALL)
_ATTRIBUTE = re.compile(r'\b[a-z-]+="[^"<>]*"(?: required)?')
"""Of an element that a macro completes."""
_SPOKEN = re.compile(r'\s(?:aria-label|title|alt|placeholder)="([^"\0]*[A-Za-z]{2}[^"\0]*)"')
_READS = re.compile(r"[A-Z][a-z]+\b(?!\.|=)|[a-z]+ [a-z]+")
"""Texts for people, not names for the program."""
_WORD = re.compile(r"[A-Za-z]{2,}")
_EXAMPLES = {"user:ann@example.com"}


@cache
def _catalog() -> dict[tuple[str | None, str | tuple[str, ...]], CatalogMessage]:
    return {(one.context, _key(one)): one for one in read_catalog("zh") if one.id}


def _key(one: CatalogMessage) -> str | tuple[str, ...]:
    return one.id if isinstance(one.id, str) else tuple(one.id)


def _said(one: CatalogMessage) -> list[str]:
    return [one.string] if isinstance(one.string, str) else list(one.string or ("",))


def test_every_message_of_the_pages_has_a_translation() -> None:
    assert messages() - set(_catalog()) == set(), "add them to backend/web/locale/zh"


def test_no_translation_is_left_of_a_message_that_is_gone() -> None:
    of_pages = {key for key in _catalog() if key[0] != SENTENCE}
    assert of_pages - messages() == set()


def test_no_translation_is_empty_fuzzy_or_english() -> None:
    wrong = [key for key, one in _catalog().items() if one.fuzzy or not all(_said(one))]
    assert wrong == []


@pytest.mark.parametrize("context", [None, SENTENCE, SCRIPT])
def test_no_translation_loses_a_placeholder_or_a_tag(context: str | None) -> None:
    holes = _IN_SCRIPT if context == SCRIPT else _PLACEHOLDER

    def parts(text: str) -> list[str]:
        tags = [] if context == SENTENCE else _TAG.findall(text)
        return sorted([*holes.findall(text), *tags])

    wrong = [
        key
        for key, one in _catalog().items()
        if key[0] == context
        for said in _said(one)
        # The text for one may go without its number.
        if parts(key[1] if isinstance(key[1], str) else key[1][-1]) != parts(said)
    ]
    assert wrong == []


def test_every_sentence_of_a_lower_layer_is_still_written_somewhere() -> None:
    written = "\n".join(_texts_of_the_product())
    labels = {text.casefold() for text in _form_texts()}
    gone = [
        key[1]
        for key in _catalog()
        if key[0] == SENTENCE
        and isinstance(key[1], str)
        and key[1].casefold() not in labels
        and not _is_written(key[1], written)
    ]
    assert set(gone) == set()


def _is_written(sentence: str, written: str) -> bool:
    """Whether its longest stretch of words without a value in it stands in the code."""
    fixed = max(_PLACEHOLDER.split(sentence), key=len).strip(" .,:?")
    variants = (fixed, fixed.replace(" ", "_"), fixed.lower(), fixed.removesuffix("s"))
    return sentence in _MADE or any(variant in written for variant in variants)


_MADE = {
    # Made of parts: of units and figures, of ordinals, by the calendar, of the phrases of HTTP.
    *(f"%(number_rank)s{end} {way}" for end in ("st", "nd", "rd", "th")
      for way in ("by meaning", "by words", "by an exact match")),
    *(f"every %(number)s {unit}s" for unit in ("second", "minute", "hour", "day")),
    *("about %(number)s hour left", "about %(number)s hours left", "any time to %(said)s"),
    "Indexing %(number_done)s documents so far",
    "Something on this installation must be fixed. See quarry doctor.",
    *(f"The {what} See quarry doctor." for what in (
        "data of this installation must be repaired.",
        "settings of this installation must be changed.",
    )),
    *("every minute", "every hour", "every day"),
    *(f"{datetime(2026, month, 1, tzinfo=UTC):%B} %(number_year)s" for month in range(1, 13)),
    *(f"{said}{why}." for said in ("Only this file is searched", "Everything is searched, with this file")
      for why in ("", ": it is too long to be read whole")),
    *(f"Of this {holder}, {number} {why} and {was} not used." for holder in ("project", "assistant")
      for number, was in (("one file", "was"), ("%(number)s files", "were"))
      for why in (f"{was} still being read", "could not be read")),
    *(f"{said} these %(number)s files{searched}{why}."
      for said, searched in (("Only", " are searched"), ("Everything is searched, with", ""))
      for why in ("", ": together they are too long to be read whole")),
    *(f"{said}: together they are too long to be read whole."
      for said in ("Only %(part_files)s are searched", "Everything is searched, with %(part_files)s",
                   "What this assistant is limited to is searched, with %(part_files)s")),
    *(f"{own}{last}" for own in ("this file", "these %(number)s files") for last in (
        " and the files of this project", " and the files of this assistant",
        ", the files of this project and the files of this assistant",
    )),
    "the files of this project and the files of this assistant",
    *(f"A {what}, not %(text)s." for what in (
        "folder is written as handbook:people/", "document is written as handbook:people/leave.md",
    )),
    "There is a group %(name)s already, of the provider %(provider)s. Choose another name.",
    "The invitation is for %(email)s, and the provider does not confirm that it is yours. Choose a password here,"
    " or sign in at the provider as somebody else.",
    *("Bad Request", "Unauthorized", "Forbidden", "Not Found", "Method Not Allowed", "Conflict"),
    *("Unprocessable Entity", "Unprocessable Content", "Too Many Requests", "Internal Server Error"),
    *("Bad Gateway", "Service Unavailable", "Gateway Timeout"),
}  # fmt: skip


def _texts_of_the_product() -> list[str]:
    """Return every literal text, with values as blanks; texts that stand side by side are one."""
    found = []
    for package in ("backend", "connectors", "indexing"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    found.append("".join(_literal(each) for each in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    texts = [path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.html"))]
    return [*found, *texts]


def _literal(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "\0"


def test_every_text_of_the_forms_has_a_translation() -> None:
    chinese = load_messages("zh")
    names = {"API", "API URL", "Bitbucket", "Confluence", "Git", "GitHub", "Gitea", "Github"}
    names |= {"Gitlab", "Slack", "Starttls", "TLS", "URL", "Wiki", "Webmail", ""}
    names |= {"Tavily", "Brave Search", "Serper", "SearXNG", "Brave", "Duckduckgo", "Grokipedia"}
    names |= {"Mojeek", "Startpage", "Wikipedia", "Yahoo"}
    left = {text for text in _form_texts() - names if chinese.translate(text) == text}
    assert left == set()


def _form_texts() -> set[str]:
    found: set[str] = set()

    def walk(fields: tuple[Field, ...]) -> None:
        for field in fields:
            found.update((field.label, field.help, *(one.label for one in field.options)))
            for group in field.groups:
                found.update((group.option.label, group.help))
                walk(group.fields)

    providers = [build_provider_form(kind) for kind in PROVIDER_KINDS]
    found.update(kind.notice for kind in PROVIDER_KINDS.values())
    for form in (*(build_form(kind.kind) for kind in list_kinds()), *providers):
        found.update((form.title, form.help, form.credential_help))
        for fields in (form.needed, form.more, form.credential):
            walk(fields)
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.glob("*.html")))
def test_a_template_shows_no_text_outside_a_message(name: str) -> None:
    assert _untranslated(_source_without_code(TEMPLATES / name)) == []


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.glob("*.html")))
def test_a_template_gives_no_text_to_an_expression_outside_a_message(name: str) -> None:
    given = set(_given_texts((TEMPLATES / name).read_text(encoding="utf-8")))
    assert {text for text in given if (SENTENCE, text) not in _catalog()} == set()


def test_a_text_in_an_expression_is_found() -> None:
    assert list(_given_texts("{{ box('a', 'Save it') if yes else _('Not now') }}")) == ["Save it"]


def _given_texts(source: str) -> Iterator[str]:
    template = Environment(extensions=["jinja2.ext.i18n"]).parse(source)
    calls = [each for each in template.find_all((nodes.Call, nodes.Filter)) if _is_message(each)]
    in_messages = {id(one) for call in calls for one in call.find_all(nodes.Const)}
    for one in template.find_all(nodes.Const):
        if isinstance(one.value, str) and id(one) not in in_messages and _READS.match(one.value):
            yield one.value


def _is_message(call: nodes.Expr) -> bool:
    if isinstance(call, nodes.Filter):
        return call.name == "counted"
    assert isinstance(call, nodes.Call)
    return isinstance(call.node, nodes.Name) and call.node.name in {"_", "gettext", "ngettext"}


def test_text_outside_a_message_is_found() -> None:
    assert _untranslated("<p>Ask an admin</p>") == ["Ask an admin"]
    assert _untranslated('<a title="Ask">\0</a>') == ["Ask"]
    assert _untranslated("<p>\0 · Quarry</p><kbd>Esc</kbd><code>quarry serve</code>") == []


def _source_without_code(path: Path) -> str:
    """Return a template with a blank in the place of all that is no literal HTML."""
    source = path.read_text(encoding="utf-8")
    source = re.sub(r"\{% set \w+ %\}.*?\{% endset %\}", "", source, flags=re.DOTALL)
    source = re.sub(r"\{% trans\b.*?\{% endtrans %\}", "\0", source, flags=re.DOTALL)
    return re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "\0", source, flags=re.DOTALL)


def _untranslated(html: str) -> list[str]:
    spoken = [text for text in _SPOKEN.findall(html) if text not in _EXAMPLES]
    seen = _ATTRIBUTE.sub("\0", _UNSEEN.sub("\0", html))
    texts = re.split(r"[\0\s]*·[\0\s]*|\0|\n", seen)
    shown = [text.strip(" .,:;()\0") for text in texts]
    return spoken + [
        text for text in shown if _WORD.search(text) and not _UNTRANSLATABLE.fullmatch(text)
    ]


def test_the_source_of_own_files_alone_has_a_name_of_ours() -> None:
    assert load_messages("zh").name_source(FILES_SOURCE) == "您的文件"
    assert load_messages("zh").name_source("Search") == "Search"
    assert load_messages("en").name_source(FILES_SOURCE) == FILES_SOURCE


def test_moments_and_numbers() -> None:
    chinese, moment = load_messages("zh"), datetime(2026, 3, 9, 14, 5, tzinfo=UTC)
    assert chinese.format_day(moment) == "2026年3月9日"
    assert chinese.format_minute(moment) == "2026年3月9日 14:05 UTC"
    assert load_messages("en").format_minute(moment) == "9 Mar 2026, 14:05 UTC"
    assert [chinese.count(number, "document") for number in (0, 1, 1_200)] == [
        "0 个文档",
        "1 个文档",
        "1,200 个文档",
    ]
