from datetime import UTC, datetime

import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from connectors.extraction.pptx import read_pptx
from connectors.extraction.result import ExtractionError
from tests.support.files import presentation, slides


def test_each_slide_gives_its_text_and_its_notes() -> None:
    read = read_pptx(slides(("Plan", "Ship in May", "Say it slowly"), ("Budget", "", "")))
    assert [(one.place.page, one.place.heading_path, one.text) for one in read.sections] == [
        (1, ("Plan",), "Ship in May"),
        (1, ("Plan", "Notes"), "Say it slowly"),
        (2, ("Budget",), "Budget"),
    ]
    assert read.title == "Plan"
    assert read.updated_at is None


def test_tables_groups_charts_and_properties() -> None:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for i, text in enumerate(["City", "Rate", "Bonn", "90"]):
        table.cell(i // 2, i % 2).text = text
    inner = slide.shapes.add_group_shape().shapes
    inner.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "in a group"
    data = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["Q1", "Q2"]
    data.add_series("2026", (10, 20.5))  # type: ignore[no-untyped-call]
    for _ in range(2):
        frame = slide.shapes.add_chart(
            XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(3), Inches(3), data
        )
    # a kind of plot that the library does not know
    (bars,) = frame.chart.element.iter("{*}barChart")
    bars.tag = bars.tag.replace("barChart", "bar3DChart")
    made.core_properties.title = "Numbers"
    made.core_properties.modified = datetime(2026, 2, 3)
    read = read_pptx(presentation(made))
    numbers = "|  | 2026 |\n| --- | --- |\n| Q1 | 10 |\n| Q2 | 20.5 |"
    assert [(one.kind, one.text) for one in read.sections] == [
        ("text", "in a group"),
        ("table", "| City | Rate |\n| --- | --- |\n| Bonn | 90 |"),
        ("table", numbers),
        ("table", numbers),
    ]
    assert read.title == "Numbers"
    assert read.updated_at == datetime(2026, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (slides(), "no text"),
        (b"plain", "not a valid presentation"),
        (slides(("a", "b", ""))[:5000], "not a valid presentation"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, says: str) -> None:
    with pytest.raises(ExtractionError, match=says):
        read_pptx(data)
