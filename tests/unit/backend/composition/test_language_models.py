"""Which models a home has, what opens for them, and whose budget is used up."""

import gc
import secrets
import weakref
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.chat.llm.messages import Usage
from backend.chat.llm.stored_models import ModelChange
from backend.chat.passages import REASON_TEXTS, PassagesReason
from backend.chat.turn_settings import PLAIN
from backend.composition.chat import ChatService
from backend.container import Container
from backend.search.llm_protocol import ChatMessage
from backend.settings import Settings
from backend.store.accounts import people
from backend.store.accounts.people import NOBODY
from backend.store.audit import OWNER
from backend.store.llm import model_usage
from backend.store.llm.language_models import ModelRole
from backend.store.llm.model_usage import TokenCounts
from backend.store.sync.credential_vault import Vault
from connectors.errors import NotFoundError
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.language_models import add_model
from tests.support.scripted_model import Refuse, Say, ScriptedModel
from tests.support.statements import noted_statements

URL = "https://llm.example.com/v1"
ANN, BOB, EVE = "ann@example.com", "bob@example.com", "eve@example.com"
HALF = TokenCounts(input_tokens=40, output_tokens=10, calls=1)


def _open(home: Path, url: str | None = None, **settings: object) -> Container:
    return Container(Settings.model_validate({"home": home, "database_url": url, **settings}))


@pytest.fixture
def container(tmp_path: Path, database_url: str) -> Iterator[Container]:
    made = _open(tmp_path, database_url, llm_person_tokens=100, llm_total_tokens=1_000)
    with closing(made.database):
        yield made


@pytest.fixture
def unlimited(tmp_path: Path) -> Iterator[Container]:
    made = _open(tmp_path)
    with closing(made.database):
        yield made


def test_no_database_is_made_to_look_for_models(tmp_path: Path) -> None:
    container = _open(tmp_path)
    assert container.language_models.choose() is None
    assert container.language_models.list_stored() == []
    assert container.language_models.find_used_budget(NOBODY) is None
    with pytest.raises(NotFoundError):
        container.language_models.open_model("large")
    assert list(tmp_path.iterdir()) == []


def test_the_model_of_the_settings_needs_no_database(tmp_path: Path) -> None:
    container = _open(tmp_path, llm_url=URL, llm_model="usual", llm_key="sk-1", llm_window=8_000)
    chosen = container.language_models.choose()
    assert chosen
    assert chosen.answering is chosen.fast
    assert chosen.fallback is None
    settings = chosen.answering.settings
    assert (settings.base_url, settings.shown_name, settings.api_key) == (URL, "usual", "sk-1")
    assert settings.context_window == 8_000
    assert container.language_models.open_model("usual").settings == settings
    with container.language_models.metering(NOBODY) as meter:
        assert meter.read() == {}
    assert list(tmp_path.iterdir()) == []


def test_each_role_has_its_model_and_connections_are_kept(container: Container) -> None:
    add_model(container, "large", URL, ModelRole.DEFAULT, context_window=100_000)
    only = container.language_models.choose()
    assert only
    assert only.fast is only.answering
    add_model(container, "small", URL, ModelRole.FAST)
    add_model(container, "other", URL, ModelRole.FALLBACK)
    chosen = container.language_models.choose()
    assert chosen
    assert chosen.fallback
    models = (chosen.answering, chosen.fast, chosen.fallback)
    assert [one.settings.shown_name for one in models] == ["large", "small", "other"]
    assert chosen.answering.settings.context_window == 100_000
    assert only.answering is chosen.answering
    again = container.language_models.choose()
    assert again == chosen


def test_an_assistant_names_the_model_that_answers(container: Container) -> None:
    add_model(container, "large", URL, ModelRole.DEFAULT)
    add_model(container, "small", URL)
    models = container.language_models
    usual, named = models.choose(), models.choose("small", 0.25)
    assert usual
    assert named
    assert (named.answering.settings.shown_name, named.fast.settings.shown_name) == (
        "small",
        "small",
    )
    # What writes queries and judges claims keeps to its own temperature.
    assert (named.answering.settings.temperature, named.fast.settings.temperature) == (0.25, None)
    again = models.choose()
    assert again == usual
    assert usual.answering.settings.temperature is None
    add_model(container, "quick", URL, ModelRole.FAST)
    named = models.choose("small")
    assert named
    assert (named.answering.settings.shown_name, named.fast.settings.shown_name) == (
        "small",
        "quick",
    )
    gone = models.choose("removed", 1.0)
    assert gone
    assert (gone.answering.settings.shown_name, gone.answering.settings.temperature) == (
        "large",
        1.0,
    )
    assert (gone.missing, named.missing, usual.missing) == ("removed", None, None)


def test_models_that_were_changed_are_let_go(container: Container) -> None:
    def choose() -> weakref.ref[object]:
        chosen = container.language_models.choose()
        assert chosen
        return weakref.ref(chosen.answering)

    add_model(container, "large", URL, ModelRole.DEFAULT)
    first = choose()
    container.model_service(OWNER).change("large", ModelChange(values={"reasons": True}))
    second = choose()
    gc.collect()
    assert first() is None
    assert second() is not None


def test_the_keys_of_models_that_are_not_used_stay_sealed(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_model(container, "large", URL, ModelRole.DEFAULT)
    for name in ("unused", "small"):
        add_model(container, name, URL)
    opened: list[object] = []
    vault_open = Vault.open

    def count(vault: Vault, sealed: str) -> object:
        opened.append(found := vault_open(vault, sealed))
        return found

    monkeypatch.setattr(Vault, "open", count)
    for _ in range(2):
        chosen = container.language_models.choose()
        assert chosen
        assert chosen.answering.settings.api_key == "key-of-large"
    assert opened == [{"key": "key-of-large"}]
    container.model_service(OWNER).change("large", ModelChange(values={}, key="sk-other"))
    changed = container.language_models.choose()
    assert changed
    assert changed.answering.settings.api_key == "sk-other"


def test_the_models_of_a_turn_are_chosen_once_and_count_each_text_once(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_model(container, "large", URL, ModelRole.DEFAULT)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    monkeypatch.setattr(ChatService, "count_model_tokens", staticmethod(count))
    models = container.chat.choose_models(PLAIN)
    assert [models.count_tokens("a file") for _ in range(3)] == [6, 6, 6]
    assert counted == ["a file"]
    container.model_service(OWNER).remove("large")
    # What is changed meanwhile counts for the next turn.
    with models.open_fast(NOBODY) as fast:
        assert fast
    assert container.chat.choose_models(PLAIN).chosen is None


def test_a_fallback_that_is_the_default_is_none(container: Container) -> None:
    add_model(container, "large", URL, ModelRole.DEFAULT, ModelRole.FALLBACK)
    chosen = container.language_models.choose()
    assert chosen
    assert chosen.fallback is None


def test_the_default_takes_over_where_an_assistant_names_the_fallback(container: Container) -> None:
    add_model(container, "large", URL, ModelRole.DEFAULT)
    add_model(container, "spare", URL, ModelRole.FALLBACK)
    chosen = container.language_models.choose("spare", 0.25)
    assert chosen
    assert chosen.fallback
    assert (chosen.answering.settings.shown_name, chosen.fallback.settings.shown_name) == (
        "spare",
        "large",
    )
    # What takes over keeps to the temperature of the assistant.
    assert chosen.fallback.settings.temperature == 0.25


def test_the_model_of_the_settings_takes_over_as_a_default_does(
    tmp_path: Path, database_url: str
) -> None:
    container = _open(tmp_path, database_url, llm_url=URL, llm_model="usual")
    with closing(container.database):
        add_model(container, "spare", URL, ModelRole.FALLBACK)
        chosen = container.language_models.choose("spare")
        assert chosen
        assert chosen.fallback
        assert chosen.fallback.settings.shown_name == "usual"


def test_small_tasks_are_done_where_the_fast_model_fails(container: Container) -> None:
    with (
        ScriptedModel(lambda _: Refuse(401, "wrong key")) as broken,
        ScriptedModel(lambda _: Say("A title")) as server,
    ):
        add_model(container, "large", server.base_url, ModelRole.DEFAULT)
        add_model(container, "small", broken.base_url, ModelRole.FAST)
        for _ in range(2):
            # What failed in one turn is not asked in the next one.
            with container.chat.choose_models(PLAIN).open_fast(NOBODY) as model:
                assert model
                assert model.complete([ChatMessage("user", "?")], Deadline.after(30)) == "A title"
        assert len(broken.requests) == 1
    (used,) = model_usage.list_since(container.database, datetime.now(UTC).date())
    assert (used.model, used.counts.calls) == ("large", 2)


def test_a_fast_model_alone_answers_nothing(container: Container) -> None:
    add_model(container, "small", URL, ModelRole.FAST)
    assert container.language_models.choose() is None


def test_it_is_known_at_once_whether_a_model_answers(container: Container) -> None:
    models = container.language_models
    assert not models.answers
    add_model(container, "large", URL, ModelRole.DEFAULT)
    models.choose()
    assert models.answers
    container.model_service(OWNER).remove("large")
    models.choose()
    assert not models.answers


def test_each_person_has_a_budget_of_a_day(container: Container) -> None:
    database, models = container.database, container.language_models
    for email in (ANN, BOB):
        add_person(database, email, Role.ADMIN)
    ann, bob = (people.get_by_email(database, email).id for email in (ANN, BOB))
    today = datetime.now(UTC).date()
    model_usage.add(database, ann, today - timedelta(days=1), {"large": HALF + HALF})
    model_usage.add(database, ann, today, {"large": HALF})
    assert models.find_used_budget(ann) is None
    model_usage.add(database, ann, today, {"small": HALF})
    assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
    assert models.find_used_budget(bob) is None
    model_usage.add(database, NOBODY, today, {"large": TokenCounts(input_tokens=899, calls=1)})
    assert models.find_used_budget(bob) is None
    assert models.find_used_budget(NOBODY) is None
    model_usage.add(database, NOBODY, today, {"large": TokenCounts(output_tokens=1, calls=1)})
    assert models.find_used_budget(bob) is PassagesReason.SHARED_BUDGET_USED
    assert models.find_used_budget(NOBODY) is PassagesReason.SHARED_BUDGET_USED
    # What is said to one who has used both is about their own.
    assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED


def test_turns_under_way_count_for_the_next_ones(container: Container) -> None:
    """A budget is exceeded by what runs already, and by nothing that begins later."""
    database, models = container.database, container.language_models
    for email in (ANN, BOB):
        add_person(database, email, Role.ADMIN)
    ann, bob = (people.get_by_email(database, email).id for email in (ANN, BOB))
    with models.metering(ann) as first, models.metering(ann) as second:
        first.follow("large", partial(Usage, 60, 10))
        assert models.find_used_budget(ann) is None
        second.follow("large", partial(Usage, 20, 10))
        assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
        assert models.find_used_budget(bob) is None
        second.follow("large", partial(Usage, 800, 100))
        assert models.find_used_budget(bob) is PassagesReason.SHARED_BUDGET_USED
    own, total = model_usage.sum_of_day(database, ann, datetime.now(UTC).date())
    assert own.tokens == total == 1_000
    assert models.find_used_budget(bob) is PassagesReason.SHARED_BUDGET_USED


def test_a_budget_of_their_own_takes_the_place_of_the_general_one(container: Container) -> None:
    database, models = container.database, container.language_models
    for email in (ANN, BOB):
        add_person(database, email, Role.ADMIN)
    ann, bob = (people.get_by_email(database, email).id for email in (ANN, BOB))
    today = datetime.now(UTC).date()
    for person in (ann, bob):
        model_usage.add(database, person, today, {"large": HALF})
    service = PeopleService(database)
    # Lower than the 100 of everybody: with 50 it is used up, for nobody else.
    service.set_token_budget(ANN, 50)
    assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
    assert models.find_used_budget(bob) is None
    service.set_token_budget(ANN, 51)
    assert models.find_used_budget(ann) is None
    # Higher than it.
    model_usage.add(database, ann, today, {"large": HALF})
    service.set_token_budget(ANN, 101)
    assert models.find_used_budget(ann) is None
    with models.metering(ann) as meter:
        meter.follow("large", partial(Usage, 1, 0))
        assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
    service.set_token_budget(ANN, 500)
    assert models.find_used_budget(ann) is None
    # It is not beyond that of a group, nor of all.
    _add_group(container, "sales", 90, ANN)
    assert models.find_used_budget(ann) is PassagesReason.GROUP_BUDGET_USED
    GroupService(database).delete("sales")
    model_usage.add(database, NOBODY, today, {"large": TokenCounts(input_tokens=900, calls=1)})
    assert models.find_used_budget(ann) is PassagesReason.SHARED_BUDGET_USED
    service.set_token_budget(ANN, 0)
    assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED


def test_a_budget_of_a_person_counts_where_the_settings_limit_nobody(unlimited: Container) -> None:
    database, models = unlimited.database, unlimited.language_models
    ann, bob = (add_person(database, email, Role.ADMIN).id for email in (ANN, BOB))
    today = datetime.now(UTC).date()
    for person in (ann, bob):
        model_usage.add(database, person, today - timedelta(days=1), {"large": HALF + HALF})
        model_usage.add(database, person, today, {"large": HALF, "small": HALF})
    PeopleService(database).set_token_budget(ANN, 101)
    assert models.find_used_budget(ann) is None
    with models.metering(ann) as meter:
        meter.follow("large", partial(Usage, 1, 0))
        assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
    PeopleService(database).set_token_budget(ANN, 100)
    assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
    assert models.find_used_budget(bob) is None
    PeopleService(database).set_token_budget(ANN, 0)
    assert models.find_used_budget(ann) is None


@pytest.mark.parametrize("limits", [{}, {"llm_person_tokens": 9}, {"llm_total_tokens": 9}])
def test_all_budgets_cost_a_question_two_statements(
    tmp_path: Path, database_url: str, limits: dict[str, int]
) -> None:
    """One for the groups of the asker, and one for their own budget, that of the settings and all sums."""
    container = _open(tmp_path, database_url, **limits)
    with closing(container.database) as database:
        ann = add_person(database, ANN, Role.ADMIN).id
        with noted_statements(database.engine) as noted:
            assert container.language_models.find_used_budget(ann) is None
        assert len([one for one in noted if one.startswith("SELECT")]) == 2


def _add_group(container: Container, name: str, tokens: int, *members: str) -> None:
    service = GroupService(container.database)
    service.create(name)
    for email in members:
        service.add_member(name, email)
    service.set_token_budget(name, tokens)


def test_the_members_of_a_group_share_its_budget_of_a_day(container: Container) -> None:
    database, models = container.database, container.language_models
    for email in (ANN, BOB, EVE):
        add_person(database, email, Role.ADMIN)
    ann, bob, eve = (people.get_by_email(database, email).id for email in (ANN, BOB, EVE))
    today = datetime.now(UTC).date()
    _add_group(container, "sales", 90, ANN, BOB)
    # Before today, and of somebody who is not in it: neither counts.
    model_usage.add(database, ann, today - timedelta(days=1), {"large": HALF + HALF})
    model_usage.add(database, eve, today, {"large": HALF})
    model_usage.add(database, ann, today, {"large": HALF})
    assert models.find_used_budget(ann) is None
    # 50 of Ann and 40 of Bob are the 90 of their group; neither has used their own 100.
    model_usage.add(database, bob, today, {"small": TokenCounts(output_tokens=40, calls=1)})
    assert models.find_used_budget(ann) is PassagesReason.GROUP_BUDGET_USED
    assert models.find_used_budget(bob) is PassagesReason.GROUP_BUDGET_USED
    assert models.find_used_budget(eve) is None
    assert models.find_used_budget(NOBODY) is None
    GroupService(database).set_token_budget("sales", 91)
    assert models.find_used_budget(ann) is None
    GroupService(database).set_token_budget("sales", 90)
    # What Ann used counts for her groups, wherever she is a member.
    GroupService(database).remove_member("sales", ANN)
    assert models.find_used_budget(ann) is None
    assert models.find_used_budget(bob) is None


def test_each_group_of_a_person_must_have_tokens_left(container: Container) -> None:
    database, models = container.database, container.language_models
    for email in (ANN, BOB):
        add_person(database, email, Role.ADMIN)
    ann, bob = (people.get_by_email(database, email).id for email in (ANN, BOB))
    today = datetime.now(UTC).date()
    _add_group(container, "all", 1_000, ANN, BOB)
    _add_group(container, "few", 50, ANN)
    _add_group(container, "unlimited", 0, ANN, BOB)
    model_usage.add(database, ann, today, {"large": HALF})
    assert models.find_used_budget(ann) is PassagesReason.GROUP_BUDGET_USED
    assert models.find_used_budget(bob) is None
    GroupService(database).delete("few")
    assert models.find_used_budget(ann) is None
    # Their own budget comes first in what is said, that of all last.
    model_usage.add(database, ann, today, {"large": HALF})
    GroupService(database).set_token_budget("all", 100)
    assert models.find_used_budget(ann) is PassagesReason.BUDGET_USED
    assert models.find_used_budget(bob) is PassagesReason.GROUP_BUDGET_USED
    model_usage.add(database, NOBODY, today, {"large": TokenCounts(input_tokens=900, calls=1)})
    assert models.find_used_budget(bob) is PassagesReason.GROUP_BUDGET_USED


def test_turns_under_way_of_other_members_count_for_a_group(container: Container) -> None:
    database, models = container.database, container.language_models
    for email in (ANN, BOB, EVE):
        add_person(database, email, Role.ADMIN)
    ann, bob, eve = (people.get_by_email(database, email).id for email in (ANN, BOB, EVE))
    _add_group(container, "sales", 100, ANN, BOB)
    _add_group(container, "other", 100, EVE)
    with models.metering(bob) as of_bob, models.metering(eve) as of_eve:
        of_eve.follow("large", partial(Usage, 90, 0))
        of_bob.follow("large", partial(Usage, 60, 9))
        assert models.find_used_budget(ann) is None
        of_bob.follow("large", partial(Usage, 21, 10))
        assert models.find_used_budget(ann) is PassagesReason.GROUP_BUDGET_USED
        assert models.find_used_budget(eve) is None


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, 3), st.integers(1, 60), max_size=4),
            st.integers(0, 120),
        ),
        max_size=3,
    ),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2))),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_group_is_used_up_as_counting_by_hand_says(
    unlimited: Container, groups: list[tuple[dict[int, int], int]], members: set[tuple[int, int]]
) -> None:
    """Four people use models; each group has the sum of what its members used, whoever that is."""
    database, mark, today = unlimited.database, secrets.token_hex(8), datetime.now(UTC).date()
    emails = [f"{mark}-{number}@example.com" for number in range(4)]
    ids = [add_person(database, email, Role.ADMIN).id for email in emails]
    used = Counter[int]()
    for person, tokens in (pair for tokens_of, _ in groups for pair in tokens_of.items()):
        used[person] += tokens
        counts = {"large": TokenCounts(input_tokens=tokens, calls=1)}
        model_usage.add(database, ids[person], today, counts)
    expected = dict.fromkeys(range(4), False)
    for group, (_, budget) in enumerate(groups):
        inside = [person for person, other in members if other == group]
        _add_group(unlimited, f"{mark}-{group}", budget, *(emails[person] for person in inside))
        if budget and sum(used[one] for one in inside) >= budget:
            expected.update(dict.fromkeys(inside, True))
    for person, is_used in expected.items():
        found = unlimited.language_models.find_used_budget(ids[person])
        assert (found is PassagesReason.GROUP_BUDGET_USED) == is_used


def test_the_sentences_say_until_when() -> None:
    assert REASON_TEXTS[PassagesReason.BUDGET_USED] == (
        "You have used today's budget of language model tokens. Search works as before; answers"
        " come from passages until midnight UTC."
    )
    # Neither the name of the group nor who used how much.
    assert REASON_TEXTS[PassagesReason.GROUP_BUDGET_USED] == (
        "Your group has used today's budget of language model tokens. Search works as before;"
        " answers come from passages until midnight UTC."
    )
    assert REASON_TEXTS[PassagesReason.SHARED_BUDGET_USED].endswith("until midnight UTC.")


def test_a_stopped_turn_is_counted_too(container: Container) -> None:
    def run() -> Generator[None, None, None]:
        with container.language_models.metering(NOBODY) as meter:
            meter.follow("large", lambda: Usage(7, 2))
            yield

    turn = run()
    next(turn)
    turn.close()
    (found,) = model_usage.list_since(container.database, datetime.now(UTC).date())
    counts = TokenCounts(input_tokens=7, output_tokens=2, calls=1)
    assert (found.model, found.counts) == ("large", counts)


def test_small_tasks_are_counted_and_stop_at_the_budget(container: Container) -> None:
    with container.chat.choose_models(PLAIN).open_fast(NOBODY) as none_set:
        assert none_set is None
    with ScriptedModel(lambda _: Say("A title")) as server:
        add_model(container, "large", server.base_url, ModelRole.DEFAULT, context_window=8_000)
        add_model(container, "small", server.base_url, ModelRole.FAST, context_window=4_000)
        with container.chat.choose_models(PLAIN).open_fast(NOBODY) as model:
            assert model
            assert (model.answering_window, model.window) == (8_000 - 2_000, 4_000 - 1_000)
            asked = [ChatMessage("user", "Name it")]
            assert model.complete(asked, Deadline.after(30)) == "A title"
    (used,) = model_usage.list_since(container.database, datetime.now(UTC).date())
    assert (used.model, used.counts.calls) == ("small", 1)
    assert used.counts.output_tokens > 0
    more = {"large": TokenCounts(input_tokens=1_000, calls=1)}
    model_usage.add(container.database, NOBODY, datetime.now(UTC).date(), more)
    with container.chat.choose_models(PLAIN).open_fast(NOBODY) as none_left:
        assert none_left is None
