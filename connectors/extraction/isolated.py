"""Extract a file in a process of its own: a hostile one that takes all memory or time, or crashes a library, ends that process alone."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from connectors.document import Place, Section, Span
from connectors.extraction.registry import extract
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.text_cleaning import parse_time

_MEMORY_BYTES = 2 << 30
_CPU_SECONDS = 60
_PROGRAM = f"import sys; from {__name__} import extract_standard_input; extract_standard_input(sys.argv[1])"
_BROKEN = "it cannot be read: it takes too much memory or time, or it is damaged"


def extract_isolated(data: bytes, media_type: str, seconds: float) -> ExtractionResult:
    """Extract the sections, the title and the time of creation of a file.

    Raises:
        ExtractionError: as `extract`, or the file takes more than it may.
    """
    found = run_isolated(_PROGRAM, [media_type], data, seconds)
    return ExtractionResult(
        sections=tuple(map(_read_section, found["sections"])),
        title=found["title"],
        created_at=parse_time(found["created_at"] or ""),
    )


def run_isolated(
    program: str, arguments: Sequence[str], data: bytes, seconds: float
) -> dict[str, Any]:
    """Run a program of ours in a process of its own, and return the JSON object that it writes.

    It is to call `limit_process` first, and may write a `problem` for people.

    Raises:
        ExtractionError: it wrote a problem, or takes more than it may.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments],
            # No variables of this process: they may contain keys.
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExtractionError("reading it takes too long") from None
    if done.returncode:
        raise ExtractionError(_BROKEN)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise ExtractionError(_BROKEN) from None
    if "problem" in found:
        raise ExtractionError(found["problem"])
    return found


def limit_process() -> None:
    """Limit what this process may take, until it ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def extract_standard_input(media_type: str) -> None:
    """Write what is extracted of standard input to standard output as JSON, in a process of its own."""
    limit_process()
    try:
        result = extract(sys.stdin.buffer.read(), media_type)
    except ExtractionError as error:
        json.dump({"problem": str(error)}, sys.stdout)
        return
    sections = [_write_section(section) for section in result.sections]
    created_at = result.created_at and result.created_at.isoformat()
    written = {"title": result.title, "created_at": created_at, "sections": sections}
    json.dump(written, sys.stdout)


def _write_section(section: Section) -> dict[str, Any]:
    place = section.place
    return {
        "text": section.text,
        "kind": section.kind,
        "link": section.link,
        "page": place.page,
        "heading_path": place.heading_path,
        "sheet": place.sheet,
        "rows": place.rows,
        "span": place.span and (place.span.start, place.span.end),
    }


def _read_section(fields: dict[str, Any]) -> Section:
    rows, span = fields["rows"], fields["span"]
    place = Place(
        page=fields["page"],
        heading_path=tuple(fields["heading_path"]),
        sheet=fields["sheet"],
        rows=rows and (rows[0], rows[1]),
        span=span and Span(*span),
    )
    return Section(text=fields["text"], kind=fields["kind"], link=fields["link"], place=place)
