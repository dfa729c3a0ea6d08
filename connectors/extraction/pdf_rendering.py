"""Render pages of PDF files as images, each page in a process of its own.

PDFium is native code and files may be hostile: a crash, or a page that takes all memory, ends that process alone.
"""

import os
import resource
import subprocess
import sys
import threading
from datetime import timedelta
from io import BufferedReader

from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.result import ExtractionError

IMAGE_TYPE = "image/webp"
WIDTH = 1_000
"""Of an image, in pixels. Pages that are very long become narrower."""
_LONGEST_SIDE = 8_000
"""In pixels; WebP allows 16,383."""
_MEMORY_BYTES = 1 << 30
_CPU_SECONDS = 20
_NO_SUCH_PAGE = 3
_PROGRAM = f"import sys; from {__name__} import render_standard_input; render_standard_input(int(sys.argv[1]))"
_RETRY_AFTER = timedelta(seconds=5)
_rendering = threading.BoundedSemaphore(2)
"""Processes at a time: a browser asks for all pages of a document at once."""
_waiting = threading.BoundedSemaphore(8)
"""Threads that render or wait for it; more would hold up everything else that a server does."""


def render_page(file: BufferedReader, number: int, seconds: float) -> bytes:
    """Return an image of a page, of the type `IMAGE_TYPE`.

    Args:
        file: a file of the disk, read from its beginning.
        number: of the page, from 1.
        seconds: in which it must be done, once it has begun.

    Raises:
        ExtractionError: the file has no such page, or it cannot be rendered.
        TemporarilyUnavailableError: too many pages are being rendered.
    """
    if not _waiting.acquire(blocking=False):
        raise TemporarilyUnavailableError("Too many pages are being rendered.", _RETRY_AFTER)
    try:
        with _rendering:
            done = _run_renderer(file, number, seconds)
    except subprocess.TimeoutExpired:
        raise ExtractionError("rendering it takes too long") from None
    finally:
        _waiting.release()
    if done.returncode == _NO_SUCH_PAGE:
        raise ExtractionError(f"the file has no page {number}")
    if done.returncode or not done.stdout:
        raise ExtractionError("it cannot be rendered")
    return done.stdout


def _run_renderer(
    file: BufferedReader, number: int, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    return subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, str(number)],
        # No variables of this process: they may contain keys.
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=seconds,
        check=False,
    )


def render_standard_input(number: int) -> None:
    """Write the image of a page of the file on standard input to standard output, in a process of its own."""
    from pypdfium2 import PdfDocument  # 20 MB that the parent does not need

    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    document = PdfDocument(sys.stdin.buffer)
    if number > len(document):
        sys.exit(_NO_SUCH_PAGE)
    page = document[number - 1]
    width, height = page.get_size()
    scale = min(WIDTH / width, _LONGEST_SIDE / height)
    page.render(scale=scale).to_pil().save(sys.stdout.buffer, "WEBP", quality=80)
