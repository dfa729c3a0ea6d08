"""Embedding an index anew with another model, and copying it to another engine."""
