"""`quarry cite`: the references of a text that was written without any."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from backend.cli import command_line
from backend.cli.command_line import As, Json, to_safe_text
from backend.cli.named_documents import find_named
from backend.container import Container
from backend.research.references.citable_source import (
    CitableSource,
    make_document_source,
    make_file_source,
    make_page_source,
)
from backend.research.references.reference_builder import ReferencedText, build_references
from backend.research.references.reference_markers import MarkerStyle, write_reference_list
from backend.schemas.references import ReferencesResponse
from backend.web_search.page_descriptions import describe_failure
from backend.web_search.results import PageOutcome, WebPage
from connectors.access import Readers
from connectors.extraction import registry
from connectors.extraction.encoding import decode
from connectors.extraction.result import ExtractionError
from indexing.runtime.deadline import Deadline

_READING_SECONDS = 60.0
_BUILDING_SECONDS = 600.0
_STANDARD_INPUT = "-"


def cite(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text or Markdown; - is standard input.")
    ],
    source: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|URL|DOCUMENT",
            help="What the text may rest on: a file, a page of the web, or a document of the index by its id,"
            " link, file name or title. May be repeated.",
        ),
    ],
    footnotes: Annotated[
        bool, typer.Option("--footnotes", help="Write [^1], the footnotes of Markdown.")
    ] = False,
    readers: As = None,
    as_json: Json = False,
) -> None:
    """Write numbered references into a text: which of its sentences each source supports."""
    own = command_line.readers(readers)
    style = MarkerStyle.FOOTNOTES if footnotes else MarkerStyle.BRACKETS
    with command_line.cli_errors(as_json):
        text = _read_text(file, as_json)
        container = command_line.open_home()
        reader = _SourceReader(
            container,
            lambda: command_line.resolve_asker(container.home_database, own, readers),
            as_json,
        )
        sources = reader.read_sources(source)
        deadline = Deadline.after(_BUILDING_SECONDS)
        built = build_references(text, sources, container.embedding.with_languages, style, deadline)
        if as_json:
            command_line.print_model(ReferencesResponse.from_built(built))
        else:
            _print(built, style)
    if not built.citations:
        raise typer.Exit(command_line.FAILED)


def _read_text(file: str, as_json: bool) -> str:
    if file == _STANDARD_INPUT:
        return decode(sys.stdin.buffer.read())
    return decode(_read_bytes(Path(file), as_json))


def _read_bytes(path: Path, as_json: bool) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        command_line.fail(f"{path} cannot be read: {error.strerror}.", as_json)


@dataclass(frozen=True, slots=True)
class _SourceReader:
    """Reads what the asker may read."""

    container: Container
    find_asker: Callable[[], Readers]
    as_json: bool

    def read_sources(self, names: Sequence[str]) -> list[CitableSource]:
        pages = dict(self._read_pages([name for name in names if _is_address(name)]))
        return [pages[name] if name in pages else self._read_source(name) for name in names]

    def _read_pages(self, addresses: Sequence[str]) -> Iterator[tuple[str, CitableSource]]:
        if not addresses:
            return
        with self.container.web.browser:
            deadline = Deadline.after(_READING_SECONDS)
            outcomes = self.container.web.page_reader.read_all(addresses, deadline)
        for address, outcome in zip(addresses, outcomes, strict=True):
            yield address, make_page_source(self._check_page(outcome))

    def _check_page(self, outcome: PageOutcome) -> WebPage:
        if not isinstance(outcome, WebPage):
            command_line.fail(describe_failure(outcome), self.as_json)
        return outcome

    def _read_source(self, name: str) -> CitableSource:
        path = Path(name)
        return self._read_file(path) if _is_file(path) else self._read_document(name)

    def _read_file(self, path: Path) -> CitableSource:
        data = _read_bytes(path, self.as_json)
        media_type = registry.detect_media_type(path.name, data[: registry.HEAD_SIZE])
        try:
            found = registry.extract(data, media_type)
        except ExtractionError as error:
            command_line.fail(f"{path} cannot be read: {error}.", self.as_json)
        return make_file_source(path.name, path.resolve().as_uri(), found)

    def _read_document(self, name: str) -> CitableSource:
        found = find_named(self.container.database, name, self.find_asker(), self.as_json)
        if found is None:
            command_line.fail(
                f"There is no file {name!r}, and no such document that you may read.", self.as_json
            )
        return make_document_source(found.document)


def _is_file(path: Path) -> bool:
    """Return whether a file is there.

    What cannot be the name of one, such as a long title of a document, names none.
    """
    try:
        return path.is_file()
    except OSError:
        return False


def _is_address(name: str) -> bool:
    return name.lower().startswith(("https://", "http://"))


def _print(built: ReferencedText, style: MarkerStyle) -> None:
    console, errors = command_line.console(), command_line.console(sys.stderr)
    console.print(to_safe_text(built.text.rstrip()), soft_wrap=True)
    if listed := write_reference_list(built.citations, style):
        heading = "" if style is MarkerStyle.FOOTNOTES else "## Sources\n\n"
        console.print(to_safe_text(f"\n{heading}{listed}"), soft_wrap=True)
    for note in built.notes if listed else (*built.notes, _NOTHING_FOUND):
        errors.print(to_safe_text(note, "dim"))


_NOTHING_FOUND = "No sentence of the text is enough like anything in the sources."
