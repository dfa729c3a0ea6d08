"""Read presentations (PPTX) slide by slide."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from itertools import groupby, zip_longest

import pptx
from lxml import etree
from pptx.chart.chart import Chart
from pptx.exc import PythonPptxError
from pptx.shapes.autoshape import Shape
from pptx.shapes.base import BaseShape
from pptx.shapes.graphfrm import GraphicFrame
from pptx.shapes.group import GroupShape
from pptx.slide import Slide
from pptx.table import Table

from connectors.document import Place, Section
from connectors.extraction.markdown_tables import format_grid
from connectors.extraction.office_metadata import add_properties
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError, ExtractionResult, make_section
from connectors.extraction.zip_limits import check_zip_limits
from connectors.text_cleaning import to_one_line

_FORMAT = "presentation"
_LARGEST_PART = 100_000_000
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_MOST_SLIDES = 10_000


def read_pptx(data: bytes) -> ExtractionResult:
    """Make sections of the text, the tables and charts, the image descriptions and the notes of each
    slide. Their page is the number of the slide, their heading its title.

    Raises:
        ExtractionError: the file is broken, protected, without text, or beyond a limit.
    """
    check_zip_limits(data, _FORMAT, _LARGEST_PART)
    began = datetime.now(UTC)
    with convert_parser_errors(_FORMAT, PythonPptxError):
        presentation = pptx.Presentation(BytesIO(data))
        if len(presentation.slides) > _MOST_SLIDES:
            raise ExtractionError(f"it has more than {_MOST_SLIDES:,} slides")
        sections = tuple(
            piece
            for number, slide in enumerate(presentation.slides, start=1)
            for piece in _read_slide(slide, number)
        )
        if not sections:
            raise ExtractionError("the presentation contains no text")
        first = next((path[0] for one in sections if (path := one.place.heading_path)), None)
        found, stated = (
            ExtractionResult(sections=sections, title=first),
            presentation.core_properties,
        )
        return add_properties(found, stated, stated.author, began)


def _read_slide(slide: Slide, number: int) -> Iterator[Section]:
    title = slide.shapes.title
    heading = title.text_frame.text if title is not None else ""
    place = Place(page=number, heading_path=(heading,))
    shapes = list(_iterate_shapes(slide.shapes))
    texts = [
        _get_text(shape) for shape in shapes if title is None or shape.shape_id != title.shape_id
    ]
    tables = [table for shape in shapes for table in _iterate_tables(shape)]
    text = "\n\n".join(filter(None, texts))
    if text or (heading.strip() and not tables):
        yield make_section(text or heading.strip(), place)
    for table in tables:
        yield make_section(table, place, "table")
    for description in filter(None, map(_get_description, shapes)):
        yield make_section(description, place, "image")
    if notes := _get_notes(slide):
        yield make_section(notes, Place(page=number, heading_path=(heading, "Notes")))


def _iterate_shapes(shapes: Iterable[BaseShape]) -> Iterator[BaseShape]:
    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _iterate_shapes(shape.shapes)
        else:
            yield shape


def _get_text(shape: BaseShape) -> str:
    if not isinstance(shape, Shape):
        return ""
    lines = (
        "  " * paragraph.level
        + ("- " if paragraph.level else "")
        + paragraph.text.replace("\v", "\n")
        for paragraph in shape.text_frame.paragraphs
        if paragraph.text.strip()
    )
    return "\n".join(lines)


def _get_description(shape: BaseShape) -> str:
    """Return the alternative text of an image."""
    return to_one_line(next(iter(shape.element.xpath("./p:nvPicPr/p:cNvPr/@descr")), ""))


def _iterate_tables(shape: BaseShape) -> Iterator[str]:
    if not isinstance(shape, GraphicFrame):
        return
    grids = [_get_rows(shape.table)] if shape.has_table else []
    if shape.has_chart:
        grids.extend(_iterate_chart_tables(shape.chart))
    yield from filter(None, map(format_grid, grids))


def _get_rows(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


def _iterate_chart_tables(chart: Chart) -> Iterator[list[list[str]]]:
    """Yield a table for each plot: a row for each category, a column for each series.

    They are read from the XML, because the library supports only some kinds of plot.
    """
    title = chart.chart_title.text_frame.text if chart.has_title else ""
    for _, group in groupby(chart.element.iter(f"{_C}ser"), key=lambda one: one.getparent()):
        series = list(group)
        categories = _get_points(series[0], "cat") or _get_points(series[0], "xVal")
        columns = [
            [
                " ".join(_get_points(one, "tx")),
                *(_get_points(one, "val") or _get_points(one, "yVal")),
            ]
            for one in series
        ]
        lines = zip_longest([title, *categories], *columns, fillvalue="")
        yield [list(line) for line in lines]


def _get_points(series: etree._Element, name: str) -> list[str]:
    return [value.text or "" for value in series.iterfind(f"{_C}{name}//{_C}v")]


def _get_notes(slide: Slide) -> str:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    return "" if frame is None else frame.text.strip()
