"""What the audit keeps of the settings of a source: who reads it sees them for as long as it is kept."""

from collections.abc import Mapping


def describe_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings without what may be a secret in an address: its query, and a name with a password."""
    return {name: _hide_secrets(value) for name, value in settings.items()}


def describe_change(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, object]:
    """Return the settings that differ, as they were and as they are; one that is not set is left out."""
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if not changed:
        return {}
    return {
        "before": describe_settings({name: before[name] for name in before if name in changed}),
        "after": describe_settings({name: after[name] for name in after if name in changed}),
    }


def _hide_secrets(value: object) -> object:
    match value:
        case str() if value.startswith(("http://", "https://")):
            return _shorten_address(value)
        case list() | tuple():
            return [_hide_secrets(one) for one in value]
        case _:
            return value


def _shorten_address(address: str) -> str:
    scheme, mark, rest = address.partition("://")
    place, asks, _ = rest.partition("?")
    host, slash, path = place.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}{'?…' if asks else ''}"
