"""What a kind says that it reaches of the server: all that its settings name."""

from collections.abc import Iterator
from typing import Any

import pytest

from connectors.connector import ServerAccess
from connectors.errors import InvalidInputError
from connectors.registry import SOURCE_KINDS, create_connector, validate_source

HOSTS = ["10.1.0.0/16", "wiki.internal"]
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "folder": [{"path": "/srv/a"}],
    "mbox": [{"path": "/srv/a"}],
    "git": [
        {"url": "/srv/a", "readers": [], "mirror": "/srv/b"},
        {"url": "file:///srv/a", "readers": []},
        {
            "url": "https://e.com/x",
            "readers": [],
            "mirror": "/srv/a",
            "private_hosts": HOSTS,
        },
    ],
    "ingest": [{"description": "Tickets"}],
    "github": [{"repositories": ["o/n"], "mirror": "/srv/a", "private_hosts": HOSTS}],
    "imap": [{"host": "e.com", "user": "a", "authority": "/srv/a", "private_hosts": HOSTS}],
    "slack": [
        {"read": {"kind": "export", "path": "/srv/a", "workspace_url": "https://e.com"}},
        {"read": {"kind": "api", "private_hosts": HOSTS}},
    ],
    "confluence": [
        {
            "url": "https://e.com",
            "site": {"kind": "data center"},
            "private_hosts": HOSTS,
        }
    ],
    "feed": [{"url": "https://e.com", "readers": ["public"], "private_hosts": HOSTS}],
    "web": [{"url": "https://e.com", "readers": ["public"], "private_hosts": HOSTS}],
}


def _list_named(schema: Any) -> Iterator[str]:
    """Yield the names of all settings of a model that are a path or private hosts."""
    match schema:
        case dict():
            for name, value in schema.get("properties", {}).items():
                if name == "private_hosts" or "'format': 'path'" in str(value):
                    yield name
            for value in schema.values():
                yield from _list_named(value)
        case list():
            for value in schema:
                yield from _list_named(value)
        case _:
            pass


def _list_values(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for each in value.values():
                yield from _list_values(each)
        case list():
            for each in value:
                yield from _list_values(each)
        case str():
            yield value
        case _:
            pass


@pytest.mark.parametrize("kind", SOURCE_KINDS)
def test_every_path_and_private_host_is_stated(kind: str) -> None:
    model = SOURCE_KINDS[kind].settings
    for settings in EXAMPLES.get(kind, ()):
        access = SOURCE_KINDS[kind].server_access(model.model_validate(settings))
        named = {one.removeprefix("file://") for one in _list_values(settings)}
        stated = {*map(str, access.paths), *access.private_hosts}
        assert stated == {one for one in named if one.startswith("/srv") or one in HOSTS}
    # A setting that is added later needs an example here, and a place in `server_access`.
    for name in set(_list_named(model.model_json_schema())):
        given = any(f"'{name}'" in str(settings) for settings in EXAMPLES.get(kind, ()))
        assert given, f"EXAMPLES needs settings of {kind} with {name}"


@pytest.mark.parametrize("kind", ["folder", "web"])
def test_what_is_objected_to_is_neither_saved_nor_made(kind: str) -> None:
    def object_to(access: ServerAccess) -> str | None:
        return f"{[*map(str, access.paths), *access.private_hosts][0]} is not allowed"

    (settings,) = EXAMPLES[kind]
    with pytest.raises(InvalidInputError, match="is not allowed"):
        validate_source(kind, settings, find_objection=object_to)
    with pytest.raises(InvalidInputError, match="is not allowed"):
        create_connector(kind, "kb", settings, find_objection=object_to)
    assert create_connector(kind, "kb", settings, find_objection=lambda _: None).source == "kb"
