"""Sentences of a text as candidates for an answer."""

from backend.chat.extractive.candidate_sentences import Candidate, find_candidates
from backend.search.models import InferenceSection
from indexing.index.protocols import Evidence, Hit
from tests.support.chunks import chunk


def found_in(text: str, document_id: str = "a") -> list[Candidate]:
    one = chunk(document_id, 0, text)
    best = Hit(one, 1.0, Evidence(cosine=0.5), ())
    return find_candidates([InferenceSection((one,), best, (best,))])
