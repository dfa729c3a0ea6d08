"""What `quarry ask` prints of an answer: its steps, its passages, its references."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from backend.chat.events import (
    GENERAL_KNOWLEDGE,
    ChatEvent,
    EarlierFindingsShown,
    PagesRead,
    SearchPlanned,
    WebSearched,
)
from backend.chat.intent.search_plan import NotNeeded, Searches
from backend.chat.passages import PassagesReason, PassagesShown, QuotedPassage, TextRun
from backend.cli.command_line import to_safe_text
from backend.schemas.answer import (
    AnswerResponse,
    CitationResponse,
    CitedSourceResponse,
    SourceKindName,
    Verdict,
)
from backend.schemas.web_lookup import ReadPageResponse
from backend.search.events import FiltersApplied, Queries, SectionsSelected, StepFailed
from indexing.text.normalization import pluralize

_VERDICTS: Mapping[Verdict, str] = {
    "verbatim": "",
    "supported": "",
    "weak": "supports this only in part",
    "unsupported": "does not support this",
    "contradicted": "says otherwise",
    "unchecked": "not checked",
}
_KINDS: Mapping[SourceKindName, str] = {
    "document": "",
    "file": "file",
    "url": "web",
    "memory": "what you asked to remember",
    "research": "earlier research",
    "image": "picture",
}
_LISTED_CHARACTERS = 100


def print_step(console: Console, event: ChatEvent) -> None:
    """Print what a turn does on its way to the answer."""
    for line, style in _list_step_lines(event):
        console.print(to_safe_text(line, style), soft_wrap=True)


def _list_step_lines(event: ChatEvent) -> Iterator[tuple[str, str]]:
    match event:
        case Queries(variants=variants):
            yield f"searching: {' · '.join(variant.text for variant in variants)}", "dim"
        case FiltersApplied(inferred=inferred):
            for one in inferred:
                yield f"first, for “{one.words}”: {one.kind}: {one.meaning}", "dim"
        case SectionsSelected(sections=sections):
            titles = dict.fromkeys(section.best.chunk.title for section in sections)
            yield f"reading: {' · '.join(titles)}", "dim"
        case StepFailed(step=step, reason=reason):
            yield f"done without {step}: {reason}", "yellow"
        case SearchPlanned(plan=Searches(knowledge=NotNeeded())):
            yield "company knowledge is not needed", "dim"
        case EarlierFindingsShown(questions=questions):
            yield f"{pluralize(len(questions), 'earlier finding')} used", "dim"
        case WebSearched():
            yield from _list_web_lines(event)
        case PagesRead(pages=pages):
            for page in map(ReadPageResponse.from_outcome, pages):
                line = f"not read: {page.url}: {page.problem}"
                yield (line, "yellow") if page.problem else (f"read: {page.url}", "dim")
        case _:
            pass


def _list_web_lines(searched: WebSearched) -> Iterator[tuple[str, str]]:
    finding = searched.finding
    answered = (
        f"; {finding.answered_by} answered"
        if len(finding.receivers) > 1 and finding.answered_by
        else ""
    )
    sent = f" (sent to {', '.join(finding.receivers)}{answered})" if finding.receivers else ""
    known = " (searched before)" if not finding.receivers and not finding.problem else ""
    yield f"on the web: {finding.query}{sent}{known}", "dim"
    if searched.withheld:
        yield f"kept out of it: {', '.join(searched.withheld)}", "dim"
    if finding.problem:
        yield f"done without the web: {finding.problem}", "yellow"


def print_general_knowledge(console: Console, answer: AnswerResponse) -> None:
    """Say where an answer is what the model has learned, and of no source."""
    if answer.general_knowledge:
        console.print(GENERAL_KNOWLEDGE, style="yellow")


def print_uncited(console: Console, answer: AnswerResponse) -> None:
    """Say which sentences state something and cite nothing, where others cite."""
    if not answer.uncited or not answer.citations:
        return
    console.print("Without a source:", style="yellow")
    for sentence in answer.uncited:
        console.print(to_safe_text(f"    {sentence}"), soft_wrap=True)


def print_references(console: Console, answer: AnswerResponse) -> None:
    """Print the cited sources, each once with all its quotes; nothing where none is cited."""
    if answer.references:
        console.print()
        console.print("References", style="bold")
    for reference in answer.references:
        cited = [one for one in answer.citations if one.number == reference.number]
        _print_reference(console, reference, cited)


def _print_reference(
    console: Console, reference: CitedSourceResponse, cited: Sequence[CitationResponse]
) -> None:
    kind = _KINDS[reference.kind]
    number, title = (f"[{reference.number}] ", "bold cyan"), to_safe_text(reference.title, "bold")
    console.print()
    console.print(Text.assemble(number, title, f" ({kind})" if kind else ""))
    for line in dict.fromkeys(map(_format_citation, cited)):
        console.print(to_safe_text(line))
    if reference.link:
        console.print(to_safe_text(f"    {reference.link}", "blue"), soft_wrap=True)


def print_passages(console: Console, shown: PassagesShown) -> None:
    """Print passages with their quotes; where nothing seems to answer, one line each."""
    console.print(shown.reason.sentence, style="bold")
    if shown.reason is not PassagesReason.NOTHING_ANSWERS:
        for passage in shown.passages:
            _print_passage(console, passage)
    elif shown.passages:
        console.print("\nThe closest passages:")
        for passage in shown.passages:
            text = "".join(run.text for run in passage.runs)
            short = text if len(text) <= _LISTED_CHARACTERS else f"{text[:_LISTED_CHARACTERS]}…"
            line = f"  {_format_heading(passage)}: “{short}”"
            console.print(to_safe_text(line), soft_wrap=True)


def _print_passage(console: Console, passage: QuotedPassage) -> None:
    number = (f"[{passage.number}] ", "bold cyan")
    quoted = (TextRun("“"), *passage.runs, TextRun("”"))
    styled = (to_safe_text(run.text, "bold" if run.highlighted else "") for run in quoted)
    console.print()
    console.print(Text.assemble(number, to_safe_text(_format_heading(passage), "bold")))
    console.print(Text.assemble("    ", *styled))
    console.print(to_safe_text(f"    {passage.link}", "blue"), soft_wrap=True)


def _format_heading(passage: QuotedPassage) -> str:
    return f"{passage.title} › {passage.place}" if passage.place else passage.title


def _format_citation(citation: CitationResponse) -> str:
    quote = f"“{' '.join(citation.quote.split())}”" if citation.quote else ""
    verdict = _VERDICTS[citation.verdict]
    return f"    {quote or verdict}" + (f" ({verdict})" if quote and verdict else "")
