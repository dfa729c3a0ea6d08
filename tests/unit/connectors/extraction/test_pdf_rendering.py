"""Images of pages, rendered by processes of their own."""

import io
import subprocess
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from io import BufferedReader
from pathlib import Path
from threading import Event

import pytest
from fpdf import FPDF
from PIL import Image

from connectors.errors import TemporarilyUnavailableError
from connectors.extraction import pdf_rendering
from connectors.extraction.pdf_rendering import WIDTH, render_page
from connectors.extraction.result import ExtractionError
from tests.support.files import pdf

UNHURRIED = 60.0


def render(path: Path, number: int, seconds: float = UNHURRIED) -> Image.Image:
    with path.open("rb") as file:
        return Image.open(io.BytesIO(render_page(file, number, seconds)))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_each_page_is_an_image_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "two.pdf", pdf("Leave is 25 days.", "Travel is by train."))
    first, second = render(path, 1), render(path, 2)
    assert first.format == "WEBP"
    assert first.width == WIDTH
    assert min(first.convert("L").tobytes()) < 128, "black on white"
    assert first.tobytes() != second.tobytes()
    with pytest.raises(ExtractionError, match="the file has no page 3"):
        render(path, 3)


def test_it_is_read_from_its_beginning_whatever_was_read_before(tmp_path: Path) -> None:
    with write(tmp_path / "one.pdf", pdf("Leave is 25 days.")).open("rb") as file:
        first = render_page(file, 1, UNHURRIED)
        assert render_page(file, 1, UNHURRIED) == first


def test_one_protected_against_copying_is_shown(tmp_path: Path) -> None:
    assert render(write(tmp_path / "copy.pdf", pdf("Leave", password="")), 1).width == WIDTH


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"no PDF", pdf("Leave", password="secret")])
def test_what_cannot_be_rendered_is_said(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ExtractionError, match="it cannot be rendered"):
        render(write(tmp_path / "broken.pdf", data), 1)


def test_a_page_of_any_size_is_an_image_of_limited_size(tmp_path: Path) -> None:
    long = FPDF(unit="pt", format=(20, 14_000))
    long.add_page()
    image = render(write(tmp_path / "long.pdf", bytes(long.output())), 1)
    assert image.size == (12, 8_000), "20 / 14,000 of the height, rounded up"


def test_the_time_is_limited(tmp_path: Path) -> None:
    with pytest.raises(ExtractionError, match="takes too long"):
        render(write(tmp_path / "one.pdf", pdf("Leave")), 1, seconds=0.001)


def test_too_many_at_once_are_refused_and_later_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, proceed = write(tmp_path / "one.pdf", pdf("Leave")), Event()
    with path.open("rb") as file:
        rendered = pdf_rendering._run_renderer(file, 1, UNHURRIED)

    def wait_for_all(
        file: BufferedReader, number: int, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        del file, number, seconds
        assert proceed.wait(UNHURRIED)
        return rendered

    monkeypatch.setattr(pdf_rendering, "_run_renderer", wait_for_all)
    with ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(render, path, 1) for _ in range(9)]
        refused, _ = wait(asked, UNHURRIED, FIRST_COMPLETED)
        proceed.set()
        assert [type(each.exception()) for each in refused] == [TemporarilyUnavailableError]
        assert sum(each.exception() is None for each in asked) == 8
    assert render(path, 1).width == WIDTH
