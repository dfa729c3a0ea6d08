"""Rendering of templates: filters for dates and numbers, and the values that every page needs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Literal, TypeAlias

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from backend.access.roles import Role
from backend.api.authorization import Asker, find_asker
from backend.api.request_context import get_request_context
from backend.sources.status_text import format_details
from backend.web.assets import StaticFiles, read_static_files
from backend.web.sanitizing import replace_controls
from indexing.text.plural_forms import pluralize

NavigationEntry: TypeAlias = Literal["search", "chat", "sources", "people", ""]
"""The entry of the navigation that is marked as current."""

THEME_COOKIE = "quarry-theme"
_THEMES = ("light", "dark")


@cache
def static_files() -> StaticFiles:
    return read_static_files()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("backend.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "replace_controls": replace_controls,
        "day": day,
        "minute": minute,
        "iso": iso,
        "counted": pluralize,
        "details": format_details,
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
    context = {
        "csrf_token": asker.csrf_token if asker else None,
        "is_admin": asker is not None and asker.role is Role.ADMIN,
        "has_accounts": get_request_context(request.scope).has_accounts,
        "person": asker.person if asker else None,
        "static": static_files().url,
        "navigation": navigation,
        "navigation_entries": list_navigation(asker),
        "theme": theme if theme in _THEMES else "auto",
        **values,
    }
    return HTMLResponse(_environment().get_template(template).render(context), status)


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


def part(template: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Render a fragment of a page, which replaces the previous one."""
    return HTMLResponse(_environment().get_template(template).render(values), status)


def day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b} {moment.year}"


def minute(moment: datetime) -> str:
    """With the zone: the server does not know that of the reader."""
    utc = moment.astimezone(UTC)
    return f"{day(utc)}, {utc:%H:%M} UTC"


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
