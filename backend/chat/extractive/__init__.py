"""Answers made of the documents' own sentences, without a language model."""
