"""Pure functions on text: normalization, tokens for BM25, identifiers, stop words, Markdown links."""
