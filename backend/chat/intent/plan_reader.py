"""From whatever a model answered in the intent step to a plan: always a usable one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import regex

from backend.chat.intent.asked_sides import find_asked_sides
from backend.chat.intent.contract_markup import Piece, PieceKind, read_bare_text, read_pieces
from backend.chat.intent.message_links import describe_link, find_links, keep_given
from backend.chat.intent.search_plan import (
    IntentRequest,
    LinkState,
    LinkToRead,
    NotNeeded,
    Queries,
    Searches,
    SearchPlan,
    Side,
    SidePlan,
    Summary,
    SwitchedOff,
    ask_message_itself,
    to_query,
)
from backend.chat.intent.unneeded_search import says_not_needed
from backend.search.follow_ups import resolve_follow_up
from indexing.text.normalization import is_visible

MAX_QUESTIONS = 4
"""On each side."""
MAX_QUESTION_CHARACTERS = 300
MAX_REWRITE_CHARACTERS = 1_000

_SUMMARIZE = regex.compile(
    r"[\W_]*(?:summari[sz]e|总结|總結|要約|zusammenfassen|résumer|resumir)[\W_]*", regex.IGNORECASE
)
_ADDRESS = regex.compile(r"https?://[^\s<>]++", regex.IGNORECASE)
_LIST_LINE = regex.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_BULLETS = regex.compile(r"(?:[-*•]\s+)++")


def plan_by_message(request: IntentRequest) -> SearchPlan:
    """Plan by the message itself, where no model is asked or its answer cannot be used.

    A follow-up is searched as what a rule takes it to mean as well.
    """
    web, knowledge = _resolve_message(request)
    return _follow_asker(_search_both(web, knowledge, _given_links(request), request), request)


def _resolve_message(request: IntentRequest) -> tuple[SidePlan, SidePlan]:
    """Plan what the web and company knowledge are asked."""
    own = ask_message_itself(request.message)
    if not isinstance(own, Queries):
        return own, own
    follow_up = resolve_follow_up(request.message, request.history)
    own = replace(own, unclear=follow_up.unclear)
    resolved = to_query(follow_up.question)
    if resolved == own.message:
        return own, own
    return (
        replace(own, questions=(_shorten(resolved, MAX_QUESTION_CHARACTERS),)),
        replace(own, rewrite=_shorten(resolved, MAX_REWRITE_CHARACTERS)),
    )


def read_plan(answer: str, request: IntentRequest) -> SearchPlan:
    """Read the plan in an answer, as much of it as can be read; the rest falls back to the message.

    Sides that are switched off stay so, and no address is read that the asker did not give, whatever the answer holds.
    The words by which the asker says where to look come before what the model decided.
    """
    pieces = read_pieces(answer)
    if not any(piece.text for piece in pieces):
        return _read_bare_answer(answer, request)
    links = _read_links(pieces, request)
    if _asks_for_summary(pieces) and (summarized := links or _given_links(request)):
        return _follow_asker(Summary(to_query(request.message), summarized), request)
    web, knowledge = (_read_side(side, pieces, request) for side in (Side.WEB, Side.KNOWLEDGE))
    return _follow_asker(_search_both(web, knowledge, links, request), request)


def _read_bare_answer(answer: str, request: IntentRequest) -> SearchPlan:
    """Read an answer of one word without marks."""
    if says_not_needed(read_bare_text(answer)):
        return _follow_asker(_search_both(NotNeeded(), NotNeeded(), (), request), request)
    return plan_by_message(request)


def _search_both(
    web: SidePlan, knowledge: SidePlan, links: tuple[LinkToRead, ...], request: IntentRequest
) -> Searches:
    """Plan searches on the sides that are switched on."""
    return Searches(
        web if Side.WEB in request.sides else SwitchedOff(),
        knowledge if Side.KNOWLEDGE in request.sides else SwitchedOff(),
        links,
    )


def _given_links(request: IntentRequest) -> tuple[LinkToRead, ...]:
    """Return the links that may be read: none where the web is switched off."""
    if Side.WEB not in request.sides:
        return ()
    given = (*find_links(request.message), *request.context_links)
    return keep_given([link.url for link in given], given)


def _read_links(pieces: Iterable[Piece], request: IntentRequest) -> tuple[LinkToRead, ...]:
    named = [piece for piece in pieces if piece.kind == "link" and piece.text]
    given = _given_links(request)
    described = [
        _add_description(link, piece)
        for piece in named
        for link in keep_given([piece.text, *(one.url for one in find_links(piece.text))], given)
    ]
    return tuple({link.url: link for link in reversed(described)}.values())[::-1]


def _add_description(link: LinkToRead, piece: Piece) -> LinkToRead:
    """Add what the model repeats of a link where the message says nothing of it."""
    if link.title or link.state is not LinkState.UNREAD:
        return link
    return describe_link(link, piece.attributes)


def _asks_for_summary(pieces: Sequence[Piece]) -> bool:
    questions = [piece for piece in pieces if piece.kind == "question" and piece.text]
    asked_of_web = [one for one in questions if one.side is not Side.KNOWLEDGE]
    return bool(asked_of_web) and all(
        _SUMMARIZE.fullmatch(_ADDRESS.sub("", one.text)) for one in asked_of_web
    )


def _read_side(side: Side, pieces: Sequence[Piece], request: IntentRequest) -> SidePlan:
    written = _texts_of("question", side, pieces)
    questions = tuple(_each_once(_read_questions(written)))[:MAX_QUESTIONS]
    if not questions and any(map(says_not_needed, written)):
        return NotNeeded()
    own = ask_message_itself(request.message)
    if not isinstance(own, Queries):
        return own
    return Queries(own.message, questions, _read_rewrite(side, pieces))


def _texts_of(kind: PieceKind, side: Side, pieces: Sequence[Piece]) -> list[str]:
    """Return the texts of a side; those that stand in no block are of each side that has none of its own."""
    of_kind = [piece for piece in pieces if piece.kind == kind and piece.text]
    own = [piece.text for piece in of_kind if piece.side is side]
    return own or [piece.text for piece in of_kind if piece.side is None]


def _read_questions(written: Iterable[str]) -> Iterable[str]:
    for text in written:
        lines = [line for line in text.splitlines() if line.strip()]
        are_listed = len(lines) > 1 and all(map(_LIST_LINE.match, lines))
        for each in [_LIST_LINE.sub("", line, count=1) for line in lines] if are_listed else [text]:
            question = _BULLETS.sub("", _shorten(each, MAX_QUESTION_CHARACTERS), count=1)
            if is_visible(question) and not _is_keyword(question):
                yield question


def _is_keyword(question: str) -> bool:
    return says_not_needed(question) or _SUMMARIZE.fullmatch(question) is not None


def _read_rewrite(side: Side, pieces: Sequence[Piece]) -> str | None:
    if side is not Side.KNOWLEDGE:
        return None
    written = (
        _shorten(text, MAX_REWRITE_CHARACTERS) for text in _texts_of("rewrite", side, pieces)
    )
    usable = (text for text in written if is_visible(text) and not _is_keyword(text))
    return next(usable, None)


def _shorten(text: str, most: int) -> str:
    line = to_query(text)
    if len(line) <= most:
        return line
    whole_words = line[: most + 1].rpartition(" ")[0]
    return whole_words if len(whole_words) > most // 2 else line[:most].rstrip()


def _each_once(texts: Iterable[str]) -> Iterable[str]:
    by_key: dict[str, str] = {}
    for text in texts:
        by_key.setdefault(text.casefold(), text)
    return by_key.values()


def _follow_asker(plan: SearchPlan, request: IntentRequest) -> SearchPlan:
    """Search where the asker says, and not where they say that nothing shall be searched.

    Where the web is searched and the model named no page, those that the asker named are read.
    """
    asked = find_asked_sides(request.message)
    wanted = asked.wanted & request.sides
    if isinstance(plan, Summary):
        if Side.KNOWLEDGE not in wanted:
            return plan
        plan = _search_both(NotNeeded(), NotNeeded(), plan.links, request)
    web = _route(plan.web, Side.WEB, wanted, asked.unwanted, request)
    knowledge = _route(plan.knowledge, Side.KNOWLEDGE, wanted, asked.unwanted, request)
    links = plan.links or (_given_links(request) if isinstance(web, Queries) else ())
    return Searches(web, knowledge, links)


def _route(
    plan: SidePlan,
    side: Side,
    wanted: frozenset[Side],
    unwanted: frozenset[Side],
    request: IntentRequest,
) -> SidePlan:
    if isinstance(plan, SwitchedOff):
        return plan
    if side in unwanted or (wanted and side not in wanted):
        return NotNeeded()
    if side in wanted and isinstance(plan, NotNeeded):
        return ask_message_itself(request.message)
    return plan
