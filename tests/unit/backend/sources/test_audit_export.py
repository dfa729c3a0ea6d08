"""The audit as a file holds every entry as it is, and nothing that a spreadsheet would run."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.schemas.source import AuditEntryResponse
from backend.sources.audit_export import export_audit

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def make_entry(subject: str, detail: dict[str, object] | None = None) -> AuditEntryResponse:
    return AuditEntryResponse(
        id=7,
        at=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
        actor="owner",
        address=None,
        action="pause",
        subject=subject,
        outcome="done",
        detail=detail or {},
    )


def rows_of(*entries: AuditEntryResponse) -> list[list[str]]:
    text = "".join(export_audit(entries, "csv"))
    return [*csv.reader(io.StringIO(text, newline=""), strict=True)]


def test_a_file_without_entries_has_its_header() -> None:
    assert rows_of() == [["id", "at", "actor", "address", "action", "subject", "outcome", "detail"]]
    assert [*export_audit([], "jsonl")] == []


def test_an_entry_is_a_row() -> None:
    (_, row) = rows_of(make_entry("desk", {"before": "a", "after": "ö"}))
    at = "2026-03-02T09:30:00Z"
    assert row == ["7", at, "owner", "", "pause", "desk", "done", '{"before": "a", "after": "ö"}']


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_a_formula_is_text(begin: str) -> None:
    (_, row) = rows_of(make_entry(f'{begin}HYPERLINK("https://evil.example")'))
    assert row[5] == f'\'{begin}HYPERLINK("https://evil.example")'


@given(TEXTS)
def test_every_subject_comes_back(subject: str) -> None:
    (_, row) = rows_of(make_entry(subject))
    assert row[5] in (subject, f"'{subject}")
    (line,) = export_audit([make_entry(subject)], "jsonl")
    assert line.count("\n") == 1
    assert json.loads(line)["subject"] == subject
