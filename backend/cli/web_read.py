"""`quarry web read`: a page of the open web, as answers would read it."""

from typing import Annotated

import typer

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.schemas.web_page import WebPageResponse
from backend.web_search.page_descriptions import describe_date, describe_failure
from backend.web_search.results import BlockedPage, PageOutcome, UnreadablePage, WebPage
from indexing.runtime.deadline import Deadline

_SECONDS = 30.0


def read(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Address of the page; https:// may be omitted.")
    ],
    as_json: Json = False,
) -> None:
    """Read a page of the web: its title, its date, its language, and what it says."""
    with command_line.cli_errors(as_json):
        url = address.strip() if "://" in address else f"https://{address.strip()}"
        web = command_line.open_home().web
        with web.browser:
            _print(web.page_reader.read(url, Deadline.after(_SECONDS)), as_json)


def _print(outcome: PageOutcome, as_json: bool) -> None:
    match outcome:
        case WebPage() if as_json:
            command_line.print_model(WebPageResponse.from_page(outcome))
        case WebPage():
            _print_page(outcome)
        case BlockedPage() | UnreadablePage():
            command_line.fail(describe_failure(outcome), as_json)


def _print_page(page: WebPage) -> None:
    console = command_line.console()
    console.print(to_safe_text(page.title, "bold"))
    console.print(to_safe_text(page.url, "dim"), soft_wrap=True)
    about = (describe_date(page.published) if page.published else "", page.language or "")
    if any(about):
        console.print(to_safe_text(", ".join(filter(None, about)), "dim"))
    console.print()
    for line in page.text.splitlines():
        console.print(to_safe_text(line), soft_wrap=True)
