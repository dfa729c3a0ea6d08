"""Chat mode: what the message needs is looked up first, and goes to the model with it as references."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from backend.chat import prompts
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import (
    CitationMode,
    DynamicCitationProcessor,
    SourceKind,
)
from backend.chat.earlier_findings import EARLIER_SHARE, EarlierFinding
from backend.chat.events import ChatEvent, EarlierFindingsShown, MemoriesShown
from backend.chat.history import MIN_RESULT_TOKENS, MessageTooLongError
from backend.chat.intent.search_plan import Side
from backend.chat.message_lookup import Found, MessageLookup
from backend.chat.model_turn import EMPTY, FILES_TOO_LONG, ModelTurn, TurnFailedError
from backend.chat.readable_ids import make_research_reference
from backend.chat.references import (
    Reference,
    drop_repeated,
    fit_references,
    format_references,
    format_web_list,
    keep_documents,
    make_document_references,
    make_file_references,
    make_memory_references,
    make_picture_references,
    make_research_references,
    map_references,
    number_references,
)
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.turn_settings import ChatMode
from backend.chat.web_lookup import explain_missing_web
from backend.search.models import Budgets, SearchRequest, SearchResult
from backend.search.prompts import INCOMPLETE

_KEPT_TEXTS = {SourceKind.WEB, SourceKind.MEMORY, SourceKind.RESEARCH}
"""Of these, what the model was shown is all that citations can be checked against."""
ROOM_SHARE = 0.9
"""Of what the window has left, what is looked up may take; the rest is for the notes and the frames of references."""


def run_chat_mode(
    turn: ChatTurn, mode: ChatMode, dependencies: ChatDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a message from what was looked up for it; the last event is AnswerDone or TurnFailed.

    The message is searched in company knowledge while a model writes what else to ask, of the documents and of the web; both are
    then searched side by side. Where one side fails, the other answers.

    `state` is complete at every moment; closing the generator stops the turn and the model.
    """
    yield from _ChatModeTurn(turn, mode, dependencies, state).run()


@dataclass(frozen=True, slots=True)
class _Material:
    """What a message is answered from; its references in the order of their numbers, files that are read whole first."""

    references: Sequence[Reference] = ()
    result: SearchResult | None = None
    notes: tuple[str, ...] = ()


class _ChatModeTurn(ModelTurn):
    def __init__(
        self,
        turn: ChatTurn,
        mode: ChatMode,
        dependencies: ChatDependencies,
        state: ChatStateContainer,
    ) -> None:
        self._mode = mode
        on = {Side.KNOWLEDGE: dependencies.search, Side.WEB: dependencies.web}
        self._sides = frozenset(side for side in mode.sides if on[side] is not None)
        self._material = _Material()
        super().__init__(turn, dependencies, state)

    @property
    def _may_search(self) -> bool:
        return bool(self._sides)

    @property
    def _stays_with_references(self) -> bool:
        """Whether gaps of company knowledge are left open: where nothing else is asked."""
        return self._sides == {Side.KNOWLEDGE}

    @property
    def _instructions(self) -> tuple[str, ...]:
        return self._reference_rules if self._cites else ()

    @property
    def _reference_rules(self) -> tuple[str, ...]:
        alone = self._stays_with_references
        rest = prompts.FROM_REFERENCES_ALONE if alone else prompts.WITH_GENERAL_KNOWLEDGE
        return (prompts.FROM_REFERENCES, rest)

    def _answer(self) -> Generator[ChatEvent, None, None]:
        if self._searches_files and Side.KNOWLEDGE not in self._sides:
            raise TurnFailedError(FILES_TOO_LONG)
        if Side.WEB in self._mode.sides - self._sides:
            yield explain_missing_web(self._turn.assistant)
        found = yield from self._make_lookup().run()
        self._material = material = self._join(found)
        shown = self._show(material)
        if not shown:
            self._conversation.add_notes(_describe_nothing(material))
        elif not self._cites:
            self._cite_after_all(shown)
        yield from self._tell_what_is_given(shown, found)
        result = yield from self._step()
        if result is None or not result.text.strip():
            raise TurnFailedError(EMPTY)
        yield self._finish(result)

    def _tell_what_is_given(
        self, shown: Sequence[Reference], found: Found
    ) -> Generator[ChatEvent, None, None]:
        """Name what the answer rests on from its start: it may be written with it, cited or not."""
        named = {one.document.document_id for one in shown}
        if memories := [one for one in shown if one.kind is SourceKind.MEMORY]:
            yield MemoriesShown(tuple(one.document.document_id for one in memories))
        if given := [one for one in found.earlier if make_research_reference(one.id) in named]:
            yield EarlierFindingsShown.of(given)

    def _make_lookup(self) -> MessageLookup:
        """Gather what a lookup needs. Raises MessageTooLongError: there is no space for what is looked up."""
        return MessageLookup(
            turn=self._turn,
            dependencies=self._dependencies,
            sides=self._sides,
            complete=self._dependencies.complete if self._mode.rewrites else None,
            make_request=self._make_request,
            files=self._files.files if self._loaded else (),
            searches_files=self._searches_files,
            room=self._find_room(),
        )

    def _find_room(self) -> int:
        left = self._conversation.room_beside(self._write_prompt(self._refer_to_files(), ()))
        if self._sides and left < MIN_RESULT_TOKENS:
            raise MessageTooLongError
        return min(Budgets.for_window(self._window).answer, int(left * ROOM_SHARE))

    def _make_request(self, room: int) -> SearchRequest:
        return self._search_request((), replace(Budgets.for_window(self._window), answer=room))

    def _refer_to_files(self) -> list[Reference]:
        return make_file_references(self._loaded, self._files.files) if self._loaded else []

    def _join(self, found: Found) -> _Material:
        result, sees = found.result, self._model.settings.sees_pictures
        # Found by its name, a picture would be a document without a text, and no picture any more.
        given = {one.document_id for one in self._turn.pictures}
        found_documents = make_document_references(result) if result else []
        references = (
            *self._refer_to_files(),
            *self._fit_earlier(found.earlier),
            *found.web.references,
            *(one for one in found_documents if one.document.document_id not in given),
            *make_memory_references(found.memories),
            *make_picture_references(self._turn.pictures if sees else ()),
        )
        notes = (*self._describe_result(result), *found.lost, *found.web.notes)
        return _Material(drop_repeated(references), result, notes)

    def _fit_earlier(self, findings: Sequence[EarlierFinding]) -> list[Reference]:
        """Return what was found out before, as much of it as has its share of the room."""
        room = int(self._find_room() * EARLIER_SHARE)
        every = make_research_references(findings)
        return fit_references(every, room, self._dependencies.count_tokens) if every else []

    def _describe_result(self, result: SearchResult | None) -> tuple[str, ...]:
        """Return what the model has to know of a result.

        Where nothing was found, the search says that gaps stay; with something else beside it they may be filled.
        """
        if result is None:
            return ()
        if not (result.note or result.sections):
            return (prompts.NOTHING_FITS,)
        if result.sections or self._stays_with_references:
            return (result.note,) if result.note else ()
        incomplete = (INCOMPLETE,) if result.partial else ()
        return (prompts.NOTHING_IN_DOCUMENTS, *incomplete)

    def _show(self, material: _Material) -> tuple[Reference, ...]:
        """Put the references that fit into the message, and make them citable; without any it goes as it is."""
        files = [one for one in material.references if one.kind is SourceKind.FILE]
        room = self._conversation.room_beside(self._write_prompt(files, material.notes))
        others = [one for one in material.references if one.kind is not SourceKind.FILE]
        fitting = fit_references(others, room, self._dependencies.count_tokens)
        shown = number_references([*files, *fitting], self._dependencies.numbers)
        question = self._write_prompt(shown, material.notes) if shown else ""
        self._conversation.put_references(question)
        self._cite(map_references(shown))
        if material.result is not None:
            found = [one for one in shown if one.kind is not SourceKind.PICTURE]
            self._state.add_results(keep_documents(material.result, found))
        for one in shown:
            if one.kind in _KEPT_TEXTS:
                self._state.add_text(one.number, one.content)
        return shown

    def _cite_after_all(self, shown: Sequence[Reference]) -> None:
        """Cite memories and pictures, where nothing is searched."""
        self._processor = DynamicCitationProcessor(CitationMode.HYPERLINK)
        self._cite(map_references(shown))
        self._conversation.add_notes(self._reference_rules)

    def _follow_replacement(self) -> Generator[ChatEvent, None, None]:
        """Show another model as many of the references as its window holds, and pictures only where it sees them."""
        yield from ()
        sees, every = self._model.settings.sees_pictures, self._material.references
        kept = [one for one in every if sees or one.kind is not SourceKind.PICTURE]
        self._show(replace(self._material, references=kept))

    def _write_prompt(self, references: Sequence[Reference], notes: Sequence[str]) -> str:
        gaps = prompts.GAPS_STAY if self._stays_with_references else prompts.GAPS_FILLED
        text = self._format(references)
        return prompts.references_prompt(self._turn.message, text, notes, gaps)

    def _format(self, references: Sequence[Reference]) -> str:
        """Format the references as one array; results of a message that is searched as it stands are a list between two."""
        of_web = [one for one in references if one.kind is SourceKind.WEB]
        if self._mode.rewrites or not of_web:
            return format_references(references)
        files = [one for one in references if one.kind is SourceKind.FILE]
        rest = [one for one in references if one.kind not in {SourceKind.FILE, SourceKind.WEB}]
        before, behind = (format_references(each) if each else "" for each in (files, rest))
        return "\n\n".join(filter(None, (before, format_web_list(of_web), behind)))


def _describe_nothing(material: _Material) -> tuple[str, ...]:
    """Return what the model has to know where it is shown no reference."""
    nothing_fits = (prompts.NOTHING_FITS,) if material.references else ()
    return (*nothing_fits, *(" ".join(note.split()) for note in material.notes))
