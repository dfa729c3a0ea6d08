"""Is a word spelled right? The vocabulary of a model has common words whole, and cuts misspelled ones into pieces."""

from indexing.embedding.embedder import Embedder

_NO_WORD = "xqzv"
"""No vocabulary has it whole. An embedder for which it is one token has none, as where tokens are estimated."""


def is_one_token(embedder: Embedder, word: str) -> bool:
    """Return whether the embedder has a vocabulary that holds a folded word whole."""
    return len(embedder.token_ends(word)) == 1 < len(embedder.token_ends(_NO_WORD))
