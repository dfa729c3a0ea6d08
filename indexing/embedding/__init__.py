"""Texts to vectors: the Embedder protocol, its implementations, and the tokenizers of models."""
