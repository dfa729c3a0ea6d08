"""`quarry research`: a question that takes many searches, planned, searched and reported in this process."""

import sys
from datetime import date
from typing import Annotated

import typer

from backend.access.shared_file_readers import resolve_in
from backend.cli import command_line
from backend.cli.command_line import As, Json
from backend.cli.local_research_workers import OWNER
from backend.cli.research_run import TerminalResearch
from backend.composition.chat import ChatService
from backend.composition.research import NO_MODEL
from backend.research.record.budget import MOST_MINUTES, ResearchBudget
from backend.research.record.request import ResearchRequest
from backend.schemas.research import ResearchReportResponse
from backend.store.chat.shared_files import FileHolders
from backend.web_search.search import SWITCHED_OFF
from connectors.access import Readers
from connectors.errors import ConflictError, NotConfiguredError
from indexing.text.normalization import is_visible


def research(
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    readers: As = None,
    web: Annotated[bool, typer.Option("--web", help="Search the web, too.")] = False,
    knowledge: Annotated[
        bool,
        typer.Option("--knowledge/--no-knowledge", help="Search company knowledge. On by default."),
    ] = True,
    minutes: Annotated[
        int, typer.Option(min=1, max=MOST_MINUTES, help="Time limit in minutes.")
    ] = 10,
    assistant: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Follow the instructions of this assistant, and search only what it is limited to.",
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Follow the instructions of this project, and search its files."
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Start at once: ask nothing back, and do not show the plan first."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Divide a question into tasks, search for each, and report what was found with its sources."""
    own = command_line.readers(readers)
    if not is_visible(question):
        raise typer.BadParameter("write a question", param_hint="QUESTION")
    if not (web or knowledge):
        raise typer.BadParameter("search company knowledge, the web, or both")
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        _check_setup(container.chat, web)
        request = ResearchRequest(
            question=question,
            uses_documents=knowledge,
            uses_web=web,
            budget=ResearchBudget(seconds=60.0 * minutes),
            today=date.today(),
        )
        asks = not yes and sys.stdin.isatty()
        holders = FileHolders(project_id=project, assistant_id=assistant)

        def resolve_readers() -> Readers:
            asker = command_line.resolve_asker(container.home_database, own, readers)
            return resolve_in(container.database, asker, OWNER, holders)

        terminal = TerminalResearch(container.research, resolve_readers, holders=holders)
        report = terminal.carry_out(request, own, asks)
        if as_json:
            command_line.print_model(ResearchReportResponse.from_report(report))
        else:
            text = command_line.to_safe_text(report.markdown)
            command_line.console().print(text, soft_wrap=True)


def _check_setup(chat: ChatService, web: bool) -> None:
    """Raise ConflictError if the web is switched off, and NotConfiguredError if there is no language model."""
    if web and not chat.find_web().is_on:
        raise ConflictError(SWITCHED_OFF)
    if chat.model is None:
        raise NotConfiguredError(NO_MODEL)
