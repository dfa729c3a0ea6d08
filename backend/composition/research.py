"""What research runs work with: the models, the index and the web of a home, and the rights of the owner of each run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.chat.turn_settings import AssistantSettings
    from backend.composition.chat import ChatService
    from backend.composition.language_models import ChosenModels, TurnModels
    from backend.research.calculations.sandbox import CalculationSandbox
    from backend.research.dependencies import ResearchDependencies, ResearchRefusal
    from backend.research.runs.run_steps import RunRights
    from backend.search.llm_protocol import Complete
    from backend.search.models import DocumentNumbers
    from backend.search.search_tool import SearchTool
    from backend.store.database import Database
    from backend.store.research.research_runs import ResearchRun
    from backend.web_search.web_session import WebSession
    from indexing.index.protocols import Filters

NO_MODEL = "Research needs a language model. Set one: quarry models add"
BUDGET_USED = "The tokens of language models for today are used up."
AGAIN_TOMORROW = "Start this research again tomorrow."


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
        """
        from backend.chat.turn_settings import PLAIN
        from connectors.errors import NotConfiguredError

        person_id = find_person_id(run)
        found = self._find_assistant(run, rights)
        assistant = found or PLAIN
        models = self.chat.choose_models(assistant)
        if (chosen := models.chosen) is None:
            raise NotConfiguredError(NO_MODEL)
        with (
            self.chat.models.metering(person_id) as meter,
            self.chat.find_web().open(None, assistant.domains) as web,
        ):
            metered = chosen.metered(meter, models.count_tokens)
            opened = self._choose(run, rights, metered, models, web)
            yield replace(opened, refusal=self._find_refusal(person_id, found))

    def _find_assistant(
        self, run: "ResearchRun", rights: "RunRights"
    ) -> "AssistantSettings | None":
        """Return which model answers, and what of the web is searched, until the run is taken up anew.

        None where nobody asks any more, or the assistant is gone.
        """
        from backend.composition.research_assistant import RunAssistant

        if (readers := rights.readers_now()) is None:
            return None
        return RunAssistant(self.chat, self.database, run).resolve(readers)

    def _find_refusal(
        self, person_id: int, assistant: "AssistantSettings | None"
    ) -> "ResearchRefusal | None":
        """Return why no model is asked and nothing is searched until the run is taken up anew.

        An assistant that is gone now and there again later would have another model and other domains till then.
        """
        from backend.research.dependencies import ResearchRefusal
        from backend.research.run_assistant import WITHOUT_ASSISTANT

        if assistant is None:
            return WITHOUT_ASSISTANT
        is_used = self.chat.models.find_used_budget(person_id)
        return ResearchRefusal(BUDGET_USED, AGAIN_TOMORROW) if is_used else None

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
            embedding=self.chat.engine.embedding.with_languages,
            sentence_embedder=self.chat.engine.embedding.sentence_vectors,
            person_id=find_person_id(run),
            resolve_assistant=RunAssistant(self.chat, self.database, run).resolve,
            find_earlier=self.chat.open_knowledge().for_run(run),
            calculate=make_calculate(self.sandbox),
            infer=self.chat.inference.infer_from_message,
            search_seconds=self.chat.settings.search_seconds,
        )

    def find_rights(self, run: "ResearchRun") -> "RunRights":
        """Return what reads the rights of the owner of a run anew, each time it is asked."""
        from backend.chat.readable_ids import make_own_memories
        from backend.conversations.turn_rights import make_owner_readers
        from backend.research.runs.run_steps import RunRights
        from backend.store.chat.shared_files import FileHolders
        from connectors.access import Readers

        own = Readers.of(*run.acting_as or ())
        holders = FileHolders(project_id=run.project_id, assistant_id=run.assistant_id)
        return RunRights(
            readers_now=make_owner_readers(self.database, run.owner, own, holders),
            own_memories=make_own_memories(self.database, run.owner),
        )


def find_person_id(run: "ResearchRun") -> int:
    """Return as whose the use of models is counted."""
    from backend.store.accounts.people import NOBODY

    return NOBODY if run.owner.person_id is None else run.owner.person_id
