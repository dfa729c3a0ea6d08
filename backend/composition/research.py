"""What research runs work with: the models, the index and the web of a home, and the rights of the owner of each run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.chat.assistant_settings import AssistantSettings
    from backend.composition.chat import ChatService
    from backend.composition.language_models import ChosenModels
    from backend.composition.turn_models import TurnModels
    from backend.research.calculations.sandbox import CalculationSandbox
    from backend.research.dependencies import ResearchDependencies
    from backend.research.runs.run_steps import RunRights
    from backend.search.llm_protocol import Complete
    from backend.search.models import DocumentNumbers
    from backend.search.search_tool import SearchTool
    from backend.store.database import Database
    from backend.store.research_runs import ResearchRun
    from backend.web_search.web_session import WebSession
    from indexing.embedding.understood_embedder import UnderstoodEmbedder
    from indexing.index.protocols import Filters

NO_MODEL = "Research needs a language model. Set one: quarry models add"
BUDGET_USED = (
    "The tokens of language models for today are used up. Start this research again tomorrow."
)


@dataclass(frozen=True, slots=True)
class ResearchParts:
    """Opens what each run works with."""

    chat: "ChatService"
    database: "Database"
    sandbox: "CalculationSandbox"

    @contextmanager
    def open(self, run: "ResearchRun", rights: "RunRights") -> "Iterator[ResearchDependencies]":
        """Yield what a run works with, within these rights; what its models use is counted as its owner's.

        Raises:
            NotConfiguredError: no language model is set.
            ActionRequiredError: a budget of today's tokens is used up.
        """
        person_id = find_person_id(run)
        assistant = self._find_assistant(run, rights)
        models = self.chat.choose_models(assistant)
        chosen = self._check_models(models, person_id)
        with (
            self.chat.models.metering(person_id) as meter,
            self.chat.find_web().open(None, assistant.domains) as web,
        ):
            metered = chosen.metered(meter, models.count_tokens)
            yield self._choose(run, rights, metered, models, web)

    def _find_assistant(self, run: "ResearchRun", rights: "RunRights") -> "AssistantSettings":
        """Return which model answers, and what of the web is searched, until the run is taken up anew.

        Where nobody asks any more, or the assistant is gone, no model is asked and nothing is searched.
        """
        from backend.chat.assistant_settings import PLAIN
        from backend.composition.research_assistant import RunAssistant

        readers = rights.readers_now()
        found = readers and RunAssistant(self.chat, self.database, run).resolve(readers)
        return found or PLAIN

    def _check_models(self, models: "TurnModels", person_id: int) -> "ChosenModels":
        from connectors.errors import ActionRequiredError, NotConfiguredError

        if models.chosen is None:
            raise NotConfiguredError(NO_MODEL)
        if self.chat.models.find_used_budget(person_id):
            raise ActionRequiredError(BUDGET_USED)
        return models.chosen

    def _choose(
        self,
        run: "ResearchRun",
        rights: "RunRights",
        chosen: "ChosenModels",
        models: "TurnModels",
        web: "WebSession | None",
    ) -> "ResearchDependencies":
        from backend.composition.research_assistant import RunAssistant
        from backend.research.agent.calculation import make_calculate
        from backend.research.dependencies import ResearchDependencies

        index = self.chat.engine.index

        def open_search(
            complete: "Complete | None", numbers: "DocumentNumbers", scope: "Filters"
        ) -> "SearchTool":
            return self.chat.search_with(models.count_tokens, scope).tool(complete, numbers)

        return ResearchDependencies(
            writer=chosen.answering,
            fast=chosen.fast,
            count_tokens=models.count_tokens,
            resolve_readers=rights.readers_now,
            index=index,
            open_search=open_search,
            web=web,
            embedding=self._find_embedding(),
            sentence_embedder=self.chat.engine.embedding.sentence_vectors,
            person_id=find_person_id(run),
            resolve_assistant=RunAssistant(self.chat, self.database, run).resolve,
            find_earlier=self.chat.open_knowledge().for_run(run),
            calculate=make_calculate(self.sandbox),
            infer=self.chat.inference.infer_from_message,
            search_seconds=self.chat.settings.search_seconds,
        )

    def _find_embedding(self) -> "UnderstoodEmbedder":
        from indexing.embedding.understood_embedder import UnderstoodEmbedder

        embedding = self.chat.engine.embedding
        return UnderstoodEmbedder(embedding.embedder, embedding.language_support)

    def find_rights(self, run: "ResearchRun") -> "RunRights":
        """Return what reads the rights of the owner of a run anew, each time it is asked."""
        from backend.chat.readable_ids import make_own_memories
        from backend.conversations.turn_rights import make_owner_readers
        from backend.research.runs.run_steps import RunRights
        from backend.store.held_files import FileHolders
        from connectors.access import Readers

        own = Readers.of(*run.acting_as or ())
        holders = FileHolders(project_id=run.project_id, assistant_id=run.assistant_id)
        return RunRights(
            readers_now=make_owner_readers(self.database, run.owner, own, holders),
            own_memories=make_own_memories(self.database, run.owner),
        )


def find_person_id(run: "ResearchRun") -> int:
    """Return as whose the use of models is counted."""
    from backend.store.people import NOBODY

    return NOBODY if run.owner.person_id is None else run.owner.person_id
