"""Build searches and answers from the index and, where one is set, the language model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from backend.composition.index import IndexEngine
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.chat.answer import ExtractiveDependencies
    from backend.chat.chat_state import ChatStateContainer
    from backend.chat.citations.judgement import ClaimJudge
    from backend.chat.context_files import ContextFile
    from backend.chat.events import ChatEvent, TurnFailed
    from backend.chat.intent.search_plan import Side
    from backend.chat.llm.client import ChatModel
    from backend.chat.passages import PassagesReason
    from backend.chat.turn import ChatDependencies, ChatTurn
    from backend.chat.turn_settings import AssistantSettings
    from backend.composition.knowledge import KnowledgeFinder
    from backend.composition.language_models import ChosenModels, LanguageModels, TurnModels
    from backend.composition.memories import MemoryFinder
    from backend.composition.web_search import WebSessions
    from backend.search.inferred_filters import FilterInference
    from backend.search.llm_protocol import Complete
    from backend.search.models import Budgets, DocumentNumbers
    from backend.search.search_service import SearchService
    from backend.search.search_tool import SearchTool
    from backend.web_search.web_session import WebSession
    from connectors.document import Document
    from indexing.embedding.token_counting import CountTokens
    from indexing.index.protocols import Filters, Index


@dataclass(frozen=True)
class ChatService:
    """Searches and answers over one index."""

    settings: Settings
    engine: IndexEngine
    source_kinds: Callable[[], Mapping[str, str]]
    """Returns the kind of each source by its name."""
    open_models: "Callable[[], LanguageModels]"
    """Called only for turns."""
    find_web: "Callable[[], WebSessions]"
    """Returns what opens the web; called only for turns that may use it."""
    open_memories: "Callable[[], MemoryFinder]"
    """Called only for turns that a language model answers."""
    open_knowledge: "Callable[[], KnowledgeFinder]"
    """The same."""

    @property
    def models(self) -> "LanguageModels":
        return self.open_models()

    @property
    def seconds(self) -> float:
        """How long an answer may take."""
        return self.settings.answer_seconds

    @property
    def budgets(self) -> "Budgets":
        from backend.search.models import Budgets

        return Budgets.for_window(self.settings.llm_window)

    @property
    def model(self) -> "ChatModel | None":
        """The model that answers now; None where none is set: answers are extractive then."""
        chosen = self.models.choose()
        return chosen.answering if chosen else None

    def choose_models(self, assistant: "AssistantSettings") -> "TurnModels":
        """Choose the models of a turn."""
        from backend.composition.language_models import TurnModels, remember_counts

        chosen = self.models.choose(assistant.model, assistant.temperature)
        count_tokens = self.count_model_tokens if chosen else self.count_tokens
        return TurnModels(chosen, remember_counts(count_tokens), self.models)

    @cached_property
    def count_tokens(self) -> "CountTokens":
        """For searches without a language model."""
        from indexing.embedding.token_counting import rough_tokens

        return rough_tokens if self.settings.llm_model is None else self.count_model_tokens

    @cached_property
    def count_model_tokens(self) -> "CountTokens":
        from indexing.embedding.token_counting import chat_token_counter

        folder = self.settings.tiktoken_cache_dir
        return chat_token_counter(folder) if folder else chat_token_counter()

    @cached_property
    def search(self) -> "SearchService":
        """Searches without the language model."""
        return self._search_over(self.engine.index, self.count_tokens)

    def search_within(self, scope: "Filters") -> "SearchService":
        """Return what searches a part of the index, otherwise as `search`."""
        from indexing.index.protocols import Filters

        if scope == Filters():
            return self.search
        return self._search_over(self._narrow_index(scope), self.count_tokens)

    def search_with(self, count_tokens: "CountTokens", scope: "Filters") -> "SearchService":
        """Return what searches as `search_within`, its texts counted for the language model that reads them."""
        return self._search_over(self._narrow_index(scope), count_tokens)

    def _search_over(self, index: "Index", count_tokens: "CountTokens") -> "SearchService":
        from backend.search.search_service import SearchService

        return SearchService(
            index=index,
            tool=partial(self._make_tool, index, count_tokens),
            budgets=self.budgets,
            seconds=self.settings.search_seconds,
            inference=self._inference_over(index),
        )

    def _make_tool(
        self,
        index: "Index",
        count_tokens: "CountTokens",
        complete: "Complete | None",
        numbers: "DocumentNumbers",
    ) -> "SearchTool":
        """Make what searches for one turn, with its language model if there is one."""
        from backend.search.search_tool import SearchTool

        return SearchTool(
            index=index,
            embedder=self.engine.embedding.embedder,
            understanding=self.engine.embedding.language_support,
            count_tokens=count_tokens,
            complete=complete,
            numbers=numbers,
        )

    def _inference_over(self, index: "Index") -> "FilterInference":
        from indexing.index.scoped_index import ScopedIndex

        is_of_all = index is self.engine.index or isinstance(index, ScopedIndex)
        return self._inference if is_of_all else self._make_inference(index)

    @property
    def inference(self) -> "FilterInference":
        """Reads words of a question as filters, over the index of all documents."""
        return self._inference

    @cached_property
    def _inference(self) -> "FilterInference":
        """Over the index of all documents: it keeps the names that each asker may see for a while."""
        return self._make_inference(self.engine.index)

    def _make_inference(self, index: "Index") -> "FilterInference":
        from backend.search.inferred_filters import FilterInference
        from backend.search.visible_names import VisibleNamesCache

        return FilterInference(names=VisibleNamesCache(index), source_kinds=self.source_kinds)

    def answer(
        self, turn: "ChatTurn", files: Sequence["Document"], state: "ChatStateContainer"
    ) -> Iterator["ChatEvent"]:
        """Answer as `answer_by`, with the models that are chosen now."""
        return self.answer_by(self.choose_models(turn.assistant), turn, files, state)

    def answer_by(
        self,
        models: "TurnModels",
        turn: "ChatTurn",
        files: Sequence["Document"],
        state: "ChatStateContainer",
    ) -> Iterator["ChatEvent"]:
        """Answer with the language model, or without one from the best sentences.

        Files that do not fit the model's window, or that no model reads, are searched instead of the index.
        """
        from backend.chat.answer import answer_from_sentences
        from backend.chat.model_failure import report_missing_model
        from backend.chat.passages import PassagesReason
        from backend.search.models import DocumentNumbers

        assistant = turn.assistant
        numbers = DocumentNumbers()
        chosen = models.chosen
        why = PassagesReason.NO_MODEL
        if chosen and (used := self.models.find_used_budget(turn.person_id)):
            chosen, why = None, used
            models = replace(models, chosen=None)
        if chosen is None and (objection := _object_to_answer(turn)):
            yield state.fail(objection)
            return
        if chosen and chosen.missing is not None:
            yield report_missing_model(chosen.missing, chosen.answering.settings.shown_name)
        fits = not _exceeds_window(turn.files, models)
        with self._index_for(() if fits else files, assistant.scope) as index:
            if chosen is None:
                with self._open_web(turn) as web:
                    quoting = self._choose_extractive_parts(turn, index, numbers, why, web)
                    yield from answer_from_sentences(turn, quoting, state)
                return
            with (
                self.models.metering(turn.person_id) as meter,
                self._open_web(turn) as web,
            ):
                state.follow_usage(meter)
                metered = chosen.metered(meter, models.count_tokens)
                parts = self._choose_parts(turn, index, metered, models.count_tokens, web)
                judge = _make_judge(turn, metered, models.count_tokens)
                yield from self._answer_by_model(turn, parts, judge, files, state)

    @contextmanager
    def _open_web(self, turn: "ChatTurn") -> "Iterator[WebSession | None]":
        from backend.chat.turn_settings import asks_web

        if not asks_web(turn.mode, turn.assistant):
            yield None
            return
        with self.find_web().open(turn.web_session, turn.assistant.domains) as web:
            yield web

    @contextmanager
    def _index_for(self, files: Sequence["Document"], scope: "Filters") -> Iterator["Index"]:
        """Open what of the index is in the scope; or, where there are files, a temporary index of these alone."""
        from indexing.ingestion.temporary_index import index_documents
        from indexing.local import open_index, open_writer

        if not files:
            yield self._narrow_index(scope)
            return
        embedder = self.engine.embedding.embedder
        with TemporaryDirectory(prefix="quarry-files-") as folder:
            index_documents(files, embedder, open_writer(Path(folder), embedder.identity))
            with closing(open_index(Path(folder), embedder.identity)) as index:
                yield index

    def _narrow_index(self, scope: "Filters") -> "Index":
        from indexing.index.protocols import Filters
        from indexing.index.scoped_index import ScopedIndex

        return self.engine.index if scope == Filters() else ScopedIndex(self.engine.index, scope)

    def _choose_extractive_parts(
        self,
        turn: "ChatTurn",
        index: "Index",
        numbers: "DocumentNumbers",
        why: "PassagesReason",
        web: "WebSession | None",
    ) -> "ExtractiveDependencies":
        from backend.chat.answer import ExtractiveDependencies
        from backend.chat.intent.search_plan import Side
        from backend.search.query_syntax import correct_request
        from indexing.embedding.vocabulary import is_one_token

        sides = _list_sides_without_model(turn)
        embedder = self.engine.embedding.embedder
        infer = self._inference_over(index).infer_from_message
        search = self._make_tool(index, self.count_tokens, None, numbers).run
        return ExtractiveDependencies(
            search=search if Side.KNOWLEDGE in sides else None,
            web=web if Side.WEB in sides else None,
            prepare=lambda request: correct_request(
                infer(request), index, partial(is_one_token, embedder)
            ),
            numbers=numbers,
            embedder=embedder,
            understanding=self.engine.embedding.language_support,
            budgets=self.budgets,
            search_seconds=self.settings.search_seconds,
            reason=why,
        )

    def _choose_parts(
        self,
        turn: "ChatTurn",
        index: "Index",
        models: "ChosenModels",
        count_tokens: "CountTokens",
        web: "WebSession | None",
    ) -> "ChatDependencies":
        from backend.chat.llm.client import make_complete
        from backend.chat.turn import ChatDependencies
        from backend.chat.turn_settings import AgentMode
        from backend.search.models import Budgets, DocumentNumbers

        complete, numbers = make_complete(models.fast), DocumentNumbers()
        # In Chat mode what is found is numbered once all of it is known.
        searched = numbers if isinstance(turn.mode, AgentMode) else DocumentNumbers()
        search = self._make_tool(index, count_tokens, complete, searched)
        return ChatDependencies(
            model=models.answering,
            fallback=models.fallback,
            count_tokens=count_tokens,
            search=search if turn.assistant.searches else None,
            complete=complete,
            web=web,
            find_memories=self.open_memories().for_owner(turn.owner),
            find_earlier=self.open_knowledge().for_turn(turn),
            numbers=numbers,
            infer=self._inference_over(index).infer_from_message,
            search_seconds=self.settings.search_seconds,
            selection_tokens=Budgets.for_window(models.fast.settings.context_window).selection,
        )

    def _answer_by_model(
        self,
        turn: "ChatTurn",
        parts: "ChatDependencies",
        judge: "ClaimJudge",
        files: Sequence["Document"],
        state: "ChatStateContainer",
    ) -> Iterator["ChatEvent"]:
        from backend.chat.answer_by_model import answer_by_model
        from backend.chat.citation_checker import CitationChecker
        from backend.chat.model_failure import PassageFallback

        embedding = self.engine.embedding
        checker = CitationChecker(
            embedding.sentence_vectors,
            embedding.language_support,
            state,
            judge,
            turn.deadline,
            {file.id: file for file in files},
        )
        fallback = PassageFallback(
            embedder=embedding.embedder,
            understanding=embedding.language_support,
            numbers=parts.numbers,
            state=state,
            model=parts.model.settings.shown_name,
        )
        answered = fallback.follow(turn, answer_by_model(turn, parts, state))
        return checker.check_citations(answered)


def _list_sides_without_model(turn: "ChatTurn") -> "frozenset[Side]":
    from backend.chat.intent.search_plan import Side
    from backend.chat.turn_settings import list_sides_without_model

    searched = {Side.KNOWLEDGE: turn.assistant.searches, Side.WEB: turn.assistant.may_use_web}
    unsearched = {side for side, is_searched in searched.items() if not is_searched}
    return list_sides_without_model(turn.mode) - unsearched


def _object_to_answer(turn: "ChatTurn") -> "TurnFailed | None":
    """Return why nothing can answer a turn where no language model does."""
    from backend.chat.turn_settings import NOTHING_ANSWERS, NOTHING_SEARCHED

    if _list_sides_without_model(turn):
        return None
    return NOTHING_SEARCHED if turn.assistant.searches else NOTHING_ANSWERS


def _make_judge(
    turn: "ChatTurn", models: "ChosenModels", count_tokens: "CountTokens"
) -> "ClaimJudge":
    from backend.chat.citations.judgement import ClaimJudge
    from backend.chat.llm.client import make_complete
    from backend.search.models import Budgets

    return ClaimJudge(
        complete=make_complete(models.fast),
        count_tokens=count_tokens,
        budget=Budgets.for_window(models.fast.settings.context_window).answer,
        deadline=turn.deadline,
    )


def _exceeds_window(files: Sequence["ContextFile"], models: "TurnModels") -> bool:
    from backend.chat.context_files import resolve_context_user_files

    if models.chosen is None:
        return True
    window = models.chosen.answering.settings.prompt_tokens
    return resolve_context_user_files(files, window, models.count_tokens).use_as_search_filter
