"""The client of OpenAI-compatible language models."""
