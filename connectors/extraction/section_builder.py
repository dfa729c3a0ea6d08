"""A document as it is read from top to bottom: headings, blocks of text, tables."""

from connectors.document import Place, Section
from connectors.extraction.result import LONGEST_HEADING, SizeLimit, make_section
from connectors.text_cleaning import replace_unstorable, to_one_line

_MOST_SECTIONS = 200_000


class HeadingStack:
    """The headings that are open at the present place, outermost first."""

    def __init__(self) -> None:
        self.first: str | None = None
        self._open: list[tuple[int, str]] = []

    def push(self, level: int, text: str) -> None:
        """Begin the part of the document below a heading; 1 is the outermost level."""
        title = to_one_line(text)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        if title:
            self._open.append((level, title))
            self.first = self.first or title

    @property
    def level(self) -> int:
        """The level of the innermost open heading, 0 above the first."""
        return self._open[-1][0] if self._open else 0

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._open)


class SectionBuilder:
    """Collects a section for each heading's own text and for each table.

    A heading with nothing below it becomes a section of its own, so that no word is lost.
    """

    def __init__(self) -> None:
        self.headings = HeadingStack()
        self._sections: list[Section] = []
        self._blocks: list[str] = []
        self._bare = False
        self._allowance = SizeLimit(
            _MOST_SECTIONS, f"it has more than {_MOST_SECTIONS:,} headings and tables"
        )

    def add_heading(self, level: int, text: str) -> None:
        if len(text) > LONGEST_HEADING:
            self.add_paragraph(text)
            return
        self._close()
        if level <= self.headings.level:
            self._keep_bare()
        self.headings.push(level, text)
        self._bare = bool(text.strip())

    def add_paragraph(self, text: str) -> None:
        """A block that stands by itself."""
        if text.strip():
            self._blocks.append(f"\n\n{text}" if self._blocks else text)

    def add_list_item(self, text: str) -> None:
        """A line of a list, with its mark and indentation."""
        if text.strip():
            self._blocks.append(f"\n{text}" if self._blocks else text)

    def add_table(self, markdown: str | None) -> None:
        if markdown:
            self._close()
            self._add(Section(text=replace_unstorable(markdown), kind="table"))

    def build(self) -> tuple[Section, ...]:
        self._close()
        self._keep_bare()
        return tuple(self._sections)

    def _close(self) -> None:
        text = "".join(self._blocks).strip("\n")
        self._blocks.clear()
        if text:
            self._add(Section(text=text))

    def _keep_bare(self) -> None:
        if self._bare:
            self._add(Section(text=self.headings.path[-1]))

    def _add(self, piece: Section) -> None:
        self._allowance.take(1)
        place = Place(heading_path=self.headings.path)
        self._sections.append(make_section(piece.text, place, piece.kind))
        self._bare = False
