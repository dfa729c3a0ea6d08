"""`GET /v1/models` and `POST /v1/embeddings`, asked by OpenAI's own client."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import openai
import pytest

from backend.access.api_tokens import TokenScope
from backend.store.accounts.people import get_by_email
from backend.store.chat import assistants
from backend.store.chat.assistants import AssistantValues, Visibility
from backend.store.owner import ConversationOwner
from indexing.runtime.deadline import Deadline
from tests.unit.backend.api.openai.conftest import ANN, BOB, Office

TEXTS = ["Parents have 26 weeks of paid leave.", "The bike cage is next to the loading bay."]


@pytest.fixture
def searching(office: Office) -> Iterator[openai.OpenAI]:
    with office.open_client(BOB, TokenScope.SEARCH) as client:
        yield client


def _add_assistant(office: Office, email: str, visibility: Visibility) -> str:
    owner = ConversationOwner(get_by_email(office.container.database, email).id)
    values = AssistantValues(name=f"Desk of {email}", visibility=visibility)
    with office.container.database.transaction() as database:
        return assistants.add(database, owner, values, datetime.now(UTC))


def test_the_models_are_the_assistants_that_the_asker_may_use(
    office: Office, bob: openai.OpenAI
) -> None:
    own = _add_assistant(office, BOB, Visibility.MINE)
    anns = _add_assistant(office, ANN, Visibility.MINE)
    shared = _add_assistant(office, ANN, Visibility.ALL)
    listed = bob.models.list().data
    assert [one.id for one in listed] == ["default", own, shared]
    assert [one.owned_by for one in listed] == ["quarry", "Bob", "Ann"]
    assert all(one.created > 0 for one in listed)
    assert bob.models.retrieve(shared).to_dict()["name"] == f"Desk of {ANN}"
    for unknown in (anns, "gpt-5"):
        with pytest.raises(openai.NotFoundError) as refused:
            bob.models.retrieve(unknown)
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


def test_texts_are_embedded_as_the_index_embeds_them(
    office: Office, searching: openai.OpenAI
) -> None:
    embedder = office.container.chat.engine.embedding.embedder
    # The client asks for base64 unless it is told otherwise.
    packed = searching.embeddings.create(model="default", input=TEXTS)
    plain = searching.embeddings.create(
        model=embedder.identity.model,
        input=TEXTS,
        encoding_format="float",
        dimensions=embedder.identity.dimension,
    )
    expected = embedder.embed_passages(TEXTS)
    for answer in (packed, plain):
        vectors = np.array([one.embedding for one in answer.data])
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        assert [one.index for one in answer.data] == [0, 1]
        assert answer.model == embedder.identity.model
        assert answer.usage.total_tokens == sum(embedder.count_tokens(TEXTS))


def test_what_is_searched_for_is_embedded_as_a_query(
    office: Office, searching: openai.OpenAI
) -> None:
    embedder = office.container.chat.engine.embedding.embedder
    answer = searching.embeddings.create(
        model="default", input=TEXTS[0], extra_body={"input_type": "query"}
    )
    expected = embedder.embed_queries(TEXTS[:1], Deadline.after(30))
    np.testing.assert_allclose([answer.data[0].embedding], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"dimensions": 12}, "dimensions"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": [1, 2, 3]}, "input"),
        ({"input": [[1, 2, 3]]}, "input"),
        ({"input": ["x"] * 129}, "input"),
        ({"input": ["leave", "leave " * 2_000]}, "input[1]"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"truncate": "END"}, "truncate"),
    ],
)
def test_what_cannot_be_embedded_is_refused_by_its_name(
    searching: openai.OpenAI, sent: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        searching.post(
            "/embeddings", body={"model": "default", "input": "x"} | sent, cast_to=object
        )
    assert refused.value.param == param


def test_another_model_for_embeddings_is_named(office: Office, searching: openai.OpenAI) -> None:
    name = office.container.chat.engine.embedding.embedder.identity.model
    with pytest.raises(openai.NotFoundError, match=name) as refused:
        searching.embeddings.create(model="text-embedding-3-small", input="x")
    assert refused.value.code == "model_not_found"


def test_a_key_that_is_not_made_for_searching_embeds_nothing(office: Office) -> None:
    with (
        office.open_client(BOB, TokenScope.ASK) as client,
        pytest.raises(openai.PermissionDeniedError),
    ):
        client.embeddings.create(model="default", input="x")
