"""The language models of one turn, chosen once, and how its texts are counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.composition.language_models import ChosenModels, LanguageModels
    from backend.conversations.fast_model import FastModel
    from indexing.embedding.token_counting import CountTokens

_MOST_COUNTED = 512
"""Texts whose tokens are remembered for the time of a turn; its files are counted several times."""


@dataclass(frozen=True, slots=True)
class TurnModels:
    chosen: "ChosenModels | None"
    """None where no language model is set."""
    count_tokens: "CountTokens"
    """Counts each text once."""
    _models: "LanguageModels"

    @contextmanager
    def open_fast(self, person_id: int) -> Iterator["FastModel | None"]:
        """Yield the model for small tasks, its use counted as a person's; None where none is set, or a budget is used up."""
        from backend.chat.llm.client import make_complete
        from backend.conversations.fast_model import FastModel

        if self.chosen is None or self._models.find_used_budget(person_id):
            yield None
            return
        with self._models.metering(person_id) as meter:
            metered = self.chosen.metered(meter, self.count_tokens)
            yield FastModel(
                complete=make_complete(metered.fast),
                count_tokens=self.count_tokens,
                window=metered.fast.settings.prompt_tokens,
                answering_window=metered.answering.settings.prompt_tokens,
            )


def remember_counts(count_tokens: "CountTokens") -> "CountTokens":
    return lru_cache(_MOST_COUNTED)(count_tokens)
