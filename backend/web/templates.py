"""Rendering of templates: filters for texts, dates and numbers, and the values that every page needs."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Literal, TypeAlias

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from backend.access.oauth.redirect_uris import describe_host
from backend.access.roles import Role
from backend.api.authorization import Asker, find_asker
from backend.api.languages import LANGUAGES, TAGS, Language, find_language
from backend.api.request_context import get_request_context
from backend.sources.status_text import format_details
from backend.web.assets import StaticFiles, read_static_files
from backend.web.catalogs import load_messages, sentences_json
from backend.web.translated_environment import TranslatedEnvironment
from connectors.text_cleaning import replace_controls
from indexing.text.normalization import pluralize

NavigationEntry: TypeAlias = Literal["search", "chat", "sources", "people", ""]
"""The entry of the navigation that is marked as current."""

THEME_COOKIE = "quarry-theme"
_THEMES = ("light", "dark")


@cache
def static_files() -> StaticFiles:
    """Read the static files, with the sentences of each language but English, for the scripts."""
    made = {_sentences_file(each): sentences_json(each) for each in LANGUAGES if each != "en"}
    return read_static_files(made)


@cache
def _script_messages(language: Language) -> str:
    return json.dumps(dict(load_messages(language).of_scripts), ensure_ascii=False)


def _sentences_file(language: Language) -> str:
    return f"sentences-{language}.json"


@cache
def _environment(language: Language) -> Environment:
    messages = load_messages(language)
    environment = TranslatedEnvironment(
        messages,
        loader=PackageLoader("backend.web"),
        autoescape=True,
        undefined=StrictUndefined,
        # The templates are as fixed as the program.
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "replace_controls": replace_controls,
        "translated": messages.translate,
        "source_name": messages.name_source,
        "day": messages.format_day,
        "day_of_year": messages.format_day_of_year,
        "minute": messages.format_minute,
        "iso": iso,
        "counted": messages.count if language != "en" else pluralize,
        "listed": messages.list_names,
        "details": format_details,
        "host": describe_host,
    }
    return environment


def page(
    request: Request,
    template: str,
    navigation: NavigationEntry,
    values: Mapping[str, object],
    status: int = 200,
) -> HTMLResponse:
    """Render a whole page."""
    theme = request.cookies.get(THEME_COOKIE)
    asker = find_asker(request.scope)
    language = find_language(request)
    context = {
        "csrf_token": asker.csrf_token if asker else None,
        "asker_key": asker.turn_key if asker else "",
        "is_admin": asker is not None and asker.role is Role.ADMIN,
        "has_accounts": get_request_context(request.scope).has_accounts,
        "person": asker.person if asker else None,
        "static": static_files().url,
        "navigation": navigation,
        "navigation_entries": list_navigation(asker),
        "theme": theme if theme in _THEMES else "auto",
        "language": language,
        "language_tag": TAGS[language],
        "languages": LANGUAGES,
        "script_messages": _script_messages(language),
        "sentences_file": _sentences_file(language),
        **values,
    }
    return part(language, template, context, status)


def list_navigation(asker: Asker | None) -> tuple[tuple[NavigationEntry, str, str], ...]:
    """Return the navigation of an asker: the entry, its address, and its label."""
    for_readers: tuple[tuple[NavigationEntry, str, str], ...] = (
        ("search", "/", "Search"),
        ("chat", "/chat", "Chat"),
    )
    if asker is None:
        return ()
    match asker.role:
        case Role.MEMBER:
            return for_readers
        case Role.SOURCE_MANAGER:
            return (*for_readers, ("sources", "/sources", "Sources"))
        case Role.ADMIN:
            return (
                *for_readers,
                ("sources", "/sources", "Sources"),
                ("people", "/people", "People"),
            )


def part(
    language: Language, template: str, values: Mapping[str, object], status: int = 200
) -> HTMLResponse:
    """Render a fragment of a page, which replaces the previous one."""
    html = _environment(language).get_template(template).render(values)
    headers = {"Content-Language": TAGS[language], "Vary": "Accept-Language, Cookie"}
    return HTMLResponse(html, status, headers)


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
