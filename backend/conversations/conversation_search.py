"""Conversations found by words. A word of an answer counts only where all that the answer rests on may be read now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from backend.conversations.answer_gate import AnswerGate
from backend.search.query_syntax import blank_out
from backend.store.chat import answer_texts, conversations
from backend.store.chat.answer_texts import ListSpan, MatchingAnswer, MatchingConversation
from backend.store.chat.conversations import Conversation, ListPosition, ListState
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.batched import batched
from indexing.text.normalization import is_storable
from indexing.text.tokenizer import find_quotes

_CHECKED_AT_ONCE = 60
"""Conversations whose answers are checked by one call of the index, a few more than a page lists; the next ones only where it is not
full by then."""
_QUOTATION_MARKS = '"“”„«»「」『』'


def read_words(query: str) -> tuple[str, ...]:
    """Return what a conversation has to hold: the words of a query, and its quoted phrases as they stand."""
    line = " ".join(query.split())
    quotes = find_quotes(line)
    phrases = [one.inner.of(line).strip() for one in quotes]
    rest = blank_out(line, [one.outer for one in quotes], " ")
    # A mark that is alone may belong to a phrase that is still being typed.
    words = [word.strip(_QUOTATION_MARKS) for word in rest.split()]
    return tuple(dict.fromkeys(filter(None, [*phrases, *words])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSearch:
    database: Database
    owner: ConversationOwner
    gate: AnswerGate
    """By what the owner may read now."""

    def list_page(
        self, state: ListState, words: Sequence[str], before: ListPosition | None, limit: int
    ) -> list[Conversation]:
        """Return those in which each word stands in the title, in a question or in an answer, the last used one first.

        What titles and questions hold is found in all conversations; what answers hold, in the 2,000 used last, whatever
        stands in them. Of these, matching answers are checked from the newest on until the page is full, each document once.
        """
        asked = conversations.list_page(
            self.database, self.owner, state=state, words=words, before=before, limit=limit
        )
        if not words or not all(map(is_storable, words)):
            return asked
        # Further down than a full page nothing is looked for.
        until = asked[-1].position if len(asked) == limit else None
        span = ListSpan(before, until)
        candidates = answer_texts.list_candidates(self.database, self.owner, state, words, span)
        known = {one.id for one in asked}
        answered = self._find([one for one in candidates if one not in known], words, limit)
        if not answered:
            return asked
        return conversations.list_these(self.database, self.owner, known.union(answered), limit)

    def _find(self, candidates: Sequence[str], words: Sequence[str], most: int) -> list[str]:
        """Return the first of the candidates in which each word stands where its asker may read it."""
        found: list[str] = []
        rights = _KnownRights(self.gate)
        for batch in batched(candidates, _CHECKED_AT_ONCE):
            matches = answer_texts.list_matches(self.database, batch, words)
            rights.learn(each for one in matches for each in one.answers)
            hits = {one.id for one in matches if _holds_all(one, words, rights)}
            found += [one for one in batch if one in hits]
            if len(found) >= most:
                break
        return found[:most]


@dataclass(frozen=True, slots=True)
class _KnownRights:
    gate: AnswerGate
    readable: set[str] = field(default_factory=set)
    checked: set[str] = field(default_factory=set)

    def learn(self, answers: Iterable[MatchingAnswer]) -> None:
        """Ask for the documents of these answers that were not asked for yet, by one call of the index."""
        unknown = {doc for each in answers for doc in each.document_ids} - self.checked
        self.readable.update(self.gate.find_readable(unknown))
        self.checked.update(unknown)

    def allow(self, answer: MatchingAnswer) -> bool:
        return self.readable.issuperset(answer.document_ids)


def _holds_all(one: MatchingConversation, words: Sequence[str], rights: _KnownRights) -> bool:
    said = (each.words for each in one.answers if rights.allow(each))
    return one.asked.union(*said).issuperset(words)
