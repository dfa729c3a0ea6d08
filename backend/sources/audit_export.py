"""The audit as a file: CSV for spreadsheets, or one JSON object a line."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from backend.schemas.source import AuditEntryResponse

_COLUMNS = ("id", "at", "actor", "address", "action", "subject", "outcome", "detail")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins so for a formula (OWASP, CSV Injection)."""


AuditFormat: TypeAlias = Literal["csv", "jsonl"]
MEDIA_TYPES: Mapping[AuditFormat, str] = MappingProxyType(
    {"csv": "text/csv", "jsonl": "application/jsonl"}
)


def export_audit(entries: Iterable[AuditEntryResponse], to: AuditFormat) -> Iterator[str]:
    """Yield the lines of the file, each with its end."""
    match to:
        case "csv":
            return _to_csv(entries)
        case "jsonl":
            return (f"{entry.model_dump_json()}\n" for entry in entries)


def _to_csv(entries: Iterable[AuditEntryResponse]) -> Iterator[str]:
    yield _to_row(_COLUMNS)
    for entry in entries:
        values = entry.model_dump(mode="json")
        values["detail"] = json.dumps(values["detail"], ensure_ascii=False)
        yield _to_row(_to_cell(values[name]) for name in _COLUMNS)


def _to_cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _to_row(cells: Iterable[str]) -> str:
    row = io.StringIO()
    csv.writer(row).writerow(cells)
    return row.getvalue()
