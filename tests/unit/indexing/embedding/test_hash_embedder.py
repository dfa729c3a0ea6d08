"""The embedder without a model: alike texts are near, and it refuses what a real one forgives."""

import pytest

from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.runtime.deadline import Deadline, DeadlineExceededError


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("refund policy", "Our refund policies are generous", "Flights are booked by hand"),
        ("Café Zürich", "the cafe in Zurich", "the bakery in Bern"),
        ("年假天数", "每年的年假是十五天", "打印机在二楼"),
        ("休暇の日数", "休暇は年に二十日", "印刷機は二階"),
    ],
)
def test_alike_texts_are_near(query: str, near: str, far: str) -> None:
    embedder = HashingEmbedder()
    asked = embedder.embed_queries([query], Deadline.after(1))[0]
    to_near, to_far = embedder.embed_passages([near, far]) @ asked
    assert to_near > to_far + 0.15


def test_tokens_are_counted_by_hand() -> None:
    embedder = HashingEmbedder()
    # "Reimburs" + "ement" + "!" and two special tokens.
    assert embedder.token_ends("Reimbursement!") == [8, 13, 14]
    assert embedder.count_tokens(["Reimbursement!", "年假", ""]) == [5, 4, 2]


def test_a_blank_or_long_passage_is_refused() -> None:
    embedder = HashingEmbedder(max_tokens=4)
    assert embedder.embed_passages(["two words"]).shape == (1, 256)
    with pytest.raises(ValueError, match="5 tokens, and the limit is 4"):
        embedder.embed_passages(["now three words"])
    with pytest.raises(ValueError, match="blank"):
        embedder.embed_passages([" \n"])


def test_a_long_query_is_cut_off() -> None:
    embedder = HashingEmbedder(max_tokens=4)
    long, cut = embedder.embed_queries(["two words more", "two words"], Deadline.after(1))
    assert (long == cut).all()


def test_a_deadline_that_has_passed_is_reported() -> None:
    with pytest.raises(DeadlineExceededError):
        HashingEmbedder().embed_queries(["word"], Deadline.after(0))
