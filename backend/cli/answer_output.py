"""What `quarry ask` prints of an answer that a language model wrote: what it rests on."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from backend.chat.events import GENERAL_KNOWLEDGE
from backend.cli.command_line import to_safe_text
from backend.schemas.answer import (
    AnswerResponse,
    CitationResponse,
    CitedSourceResponse,
    SourceKindName,
    Verdict,
)

_VERDICTS: Mapping[Verdict, str] = {
    "verbatim": "",
    "supported": "",
    "weak": "supports this only in part",
    "unsupported": "does not support this",
    "contradicted": "contradicts this",
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


def _format_citation(citation: CitationResponse) -> str:
    quote = f"“{' '.join(citation.quote.split())}”" if citation.quote else ""
    verdict = _VERDICTS[citation.verdict]
    return f"    {quote or verdict}" + (f" ({verdict})" if quote and verdict else "")
