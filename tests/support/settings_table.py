"""Writes `docs/settings.md`, the table of all settings, from `backend/settings.py`: `make settings`."""

from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from backend.settings import Settings, variable

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
HEAD = """# Settings

Every setting is an environment variable. This table is written by `make settings` from `backend/settings.py`.

| variable | what it sets | default |
|---|---|---|
"""


def settings_table() -> str:
    rows = (_row(name, field) for name, field in Settings.model_fields.items())
    return HEAD + "".join(f"{row}\n" for row in rows)


def list_defaults() -> dict[str, str]:
    """Return what the table says of each variable's default."""
    return {
        _shown(name, field): _default(field.default)
        for name, field in Settings.model_fields.items()
    }


def _row(name: str, field: FieldInfo) -> str:
    return f"| `{_shown(name, field)}` | {field.description} | {_default(field.default)} |"


def _shown(name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    return alias if isinstance(alias, str) else variable(name)


def _default(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:g}"
        case str() if value:
            return f"`{value}`"
        case _:
            return ""


if __name__ == "__main__":
    PAGE.write_text(settings_table(), encoding="utf-8")
