"""Reading large pages in a process of its own: markup can be made so that a parser takes minutes for it."""

import json
import sys
import threading
from dataclasses import asdict
from datetime import datetime
from typing import Any

from lxml import etree

from backend.web_search.html_content import read_html_page
from backend.web_search.obstacles import PageSigns
from backend.web_search.page_content import PageContent
from backend.web_search.results import PageDate, PageLink
from connectors.extraction.html import check_attributes
from connectors.extraction.isolated import limit_process, run_isolated
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import parse_html
from indexing.runtime.deadline import Deadline

LARGEST_HERE = 300_000
"""Characters. A process costs about a second; what is in a page of this size and so many elements takes no longer."""
MOST_TAGS_HERE = 15_000
FEW_TAGS = 1_000
"""With so many a page takes little time, however it is made; of more, its elements are counted."""
MOST_ELEMENTS_HERE = 8_000
"""Each may be of one tag alone: `<p>` needs no end."""
MOST_DEPTH_HERE = 200_000
"""Of all elements together: the detection of the article looks at what each stands in."""
_PROGRAM = f"from {__name__} import read_standard_input; read_standard_input()"
_PROCESSES = threading.BoundedSemaphore(2)


def read_page(page: str, url: str, server_language: str | None, deadline: Deadline) -> PageContent:
    """Read a page as `read_html_page` does, a large one, or one of many tags, in a process of its own.

    Raises:
        ExtractionError: it is nested too deeply, a tag has too many attributes, or it takes more than it may.
    """
    if not is_costly(page):
        return read_html_page(page, url, server_language)
    check_attributes(page)  # no process is started for a page that none reads
    if not _PROCESSES.acquire(timeout=deadline.remaining()):
        raise ExtractionError("reading it takes too long")
    try:
        asked = json.dumps({"page": page, "url": url, "server_language": server_language})
        found = run_isolated(_PROGRAM, [], asked.encode("ascii"), deadline.remaining())
    finally:
        _PROCESSES.release()
    return _from_json(found)


def is_costly(page: str) -> bool:
    """Return whether a page may take longer to read than a process takes to start."""
    tags = page.count("<")
    if len(page) > LARGEST_HERE or tags > MOST_TAGS_HERE:
        return True
    if tags <= FEW_TAGS or (root := parse_html(page)) is None:
        return False
    elements, depth, total = 0, 0, 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        elements += event == "start"
        total += depth if event == "start" else 0
    return elements > MOST_ELEMENTS_HERE or total > MOST_DEPTH_HERE


def read_standard_input() -> None:
    """Write what the page on standard input says to standard output, in a process of its own."""
    limit_process()
    try:
        content = read_html_page(**json.load(sys.stdin.buffer))
    except ExtractionError as error:
        json.dump({"problem": str(error)}, sys.stdout)
        return
    json.dump(asdict(content), sys.stdout, default=datetime.isoformat)


def _from_json(found: dict[str, Any]) -> PageContent:
    published, signs = found["published"], found["signs"]
    date = published and PageDate(
        datetime.fromisoformat(published["at"]), is_guess=published["is_guess"]
    )
    links = tuple(PageLink(**link) for link in found["links"])
    fields = {**found, "published": date, "links": links, "signs": signs and PageSigns(**signs)}
    return PageContent(**fields)
