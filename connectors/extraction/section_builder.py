"""Build sections from the headings, paragraphs and tables of a document, in order."""

from connectors.document import Place, Section
from connectors.extraction.result import LONGEST_HEADING, SizeLimit, make_section
from connectors.text_cleaning import replace_unstorable, to_one_line

_MOST_SECTIONS = 200_000


class HeadingStack:
    """The headings above the current position, outermost first."""

    def __init__(self) -> None:
        self.first: str | None = None
        self._open: list[tuple[int, str]] = []

    def push(self, level: int, text: str) -> None:
        """Start the part below a heading; 1 is the outermost level."""
        title = to_one_line(text)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        if title:
            self._open.append((level, title))
            self.first = self.first or title

    @property
    def level(self) -> int:
        """Level of the innermost heading; 0 above the first."""
        return self._open[-1][0] if self._open else 0

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._open)


class SectionBuilder:
    """Makes a section of each heading's own text and of each table.

    A heading without text below it becomes a section of its own, so that it can be found.
    """

    def __init__(self) -> None:
        self.headings = HeadingStack()
        self._sections: list[Section] = []
        self._blocks: list[str] = []
        self._has_bare_heading = False
        self._limit = SizeLimit(
            _MOST_SECTIONS, f"it has more than {_MOST_SECTIONS:,} headings and tables"
        )

    def add_heading(self, level: int, text: str) -> None:
        if len(text) > LONGEST_HEADING:
            self.add_paragraph(text)
            return
        self._flush()
        if level <= self.headings.level:
            self._add_bare_heading()
        self.headings.push(level, text)
        self._has_bare_heading = bool(text.strip())

    def add_paragraph(self, text: str) -> None:
        """Add a block of text."""
        if text.strip():
            self._blocks.append(f"\n\n{text}" if self._blocks else text)

    def add_list_item(self, text: str) -> None:
        """Add a list item, with its mark and indentation."""
        if text.strip():
            self._blocks.append(f"\n{text}" if self._blocks else text)

    def add_table(self, markdown: str | None) -> None:
        if markdown:
            self._flush()
            self._add_section(Section(text=replace_unstorable(markdown), kind="table"))

    def build(self) -> tuple[Section, ...]:
        self._flush()
        self._add_bare_heading()
        return tuple(self._sections)

    def _flush(self) -> None:
        text = "".join(self._blocks).strip("\n")
        self._blocks.clear()
        if text:
            self._add_section(Section(text=text))

    def _add_bare_heading(self) -> None:
        if self._has_bare_heading:
            self._add_section(Section(text=self.headings.path[-1]))

    def _add_section(self, piece: Section) -> None:
        self._limit.add(1)
        place = Place(heading_path=self.headings.path)
        self._sections.append(make_section(piece.text, place, piece.kind))
        self._has_bare_heading = False
