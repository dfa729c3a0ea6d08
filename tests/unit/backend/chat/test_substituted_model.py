"""What happens to small tasks where the fast model fails or is silent, and what that costs a turn."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from backend.chat import substituted_model
from backend.chat.llm import resting_models
from backend.chat.llm.client import LanguageModel, make_complete
from backend.chat.llm.metering import UsageMeter
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.llm.resting_models import RestingModels
from backend.chat.substituted_model import SubstitutedModel, meter_model
from backend.search.llm_protocol import ChatMessage, CompletionError
from indexing.runtime.deadline import CancelToken, Deadline
from tests.support.scripted_model import (
    Manner,
    Refuse,
    Reply,
    Say,
    ScriptedModel,
    Silent,
)

QUESTION = (ChatMessage("user", "Which query?"),)


@dataclass(frozen=True)
class Pair:
    fast: ScriptedModel
    usual: ScriptedModel
    model: SubstitutedModel

    def complete(self, deadline: Deadline) -> str:
        return make_complete(self.model)(QUESTION, deadline)


def _connect(server: ScriptedModel, name: str) -> LanguageModel:
    return LanguageModel(
        ModelSettings(base_url=server.base_url, model="scripted", name=name, first_backoff=0.01)
    )


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ScriptedModel() as fast, ScriptedModel(lambda _: Say("by the usual one")) as usual:
        model = SubstitutedModel(_connect(fast, "small"), _connect(usual, "large"), RestingModels())
        yield Pair(fast, usual, model)


def test_a_fast_model_that_answers_is_asked_alone(pair: Pair) -> None:
    pair.fast.play(lambda _: Say("by the fast one"))
    assert [pair.complete(Deadline.after(5)) for _ in range(2)] == ["by the fast one"] * 2
    assert pair.usual.requests == []
    assert pair.model.settings.shown_name == "small"


@pytest.mark.parametrize(
    "reply",
    [
        Refuse(500, "out of order"),
        Refuse(401, "wrong key"),
        Say("cut off here", manner=Manner(cut_after=2)),
    ],
)
def test_another_one_does_what_it_fails_to_do(pair: Pair, reply: Reply) -> None:
    pair.fast.play(lambda _: reply)
    assert pair.complete(Deadline.after(5)) == "by the usual one"
    asked = len(pair.fast.requests)
    # It is left alone for a while.
    assert pair.complete(Deadline.after(5)) == "by the usual one"
    assert len(pair.fast.requests) == asked
    assert pair.model.settings.shown_name == "large"


@pytest.mark.parametrize(("least_patience", "asked_next"), [(0.4, "large"), (3.0, "small")])
def test_a_silent_one_leaves_half_of_the_time_to_the_other(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, least_patience: float, asked_next: str
) -> None:
    """Where it was given little time, it may only be slow, and is asked again."""
    monkeypatch.setattr(substituted_model, "LEAST_PATIENCE", least_patience)
    pair.fast.play(lambda _: Silent())
    began = time.monotonic()
    assert pair.complete(Deadline.after(1)) == "by the usual one"
    assert 0.4 < time.monotonic() - began < 0.9
    assert pair.model.settings.shown_name == asked_next


def test_one_request_that_is_refused_keeps_no_other_from_it(pair: Pair) -> None:
    pair.fast.play([Refuse(400, "content filter"), Say("by the fast one")])
    assert pair.complete(Deadline.after(5)) == "by the usual one"
    assert pair.complete(Deadline.after(5)) == "by the fast one"


def test_it_is_asked_again_after_its_rest(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting_models, "REST_SECONDS", 0.2)
    pair.fast.play([Refuse(401), Say("by the fast one")])
    assert pair.complete(Deadline.after(5)) == "by the usual one"
    time.sleep(0.25)
    assert pair.complete(Deadline.after(5)) == "by the fast one"


def test_one_whose_turn_has_ended_has_not_failed(pair: Pair) -> None:
    token = CancelToken()
    token.cancel()
    for ended in (Deadline.after(0), Deadline.after(5, token)):
        with pytest.raises(CompletionError):
            pair.complete(ended)
    pair.fast.play(lambda _: Say(["slow"] * 20, manner=Manner(delay=0.1)))
    with pytest.raises(CompletionError):
        pair.complete(Deadline.after(0.5))
    assert pair.model.settings.shown_name == "small"
    assert pair.usual.requests == []


def test_what_the_other_one_does_is_counted_as_its_own(pair: Pair) -> None:
    pair.fast.play(lambda _: Refuse(401))
    outer, inner = UsageMeter(), UsageMeter()
    # As a step of research counts within the turn that counts too.
    model = meter_model(meter_model(pair.model, outer, len), inner, len)
    assert make_complete(model)(QUESTION, Deadline.after(5)) == "by the usual one"
    for meter in (outer, inner):
        assert {name: counts.calls for name, counts in meter.read().items()} == {"large": 1}
