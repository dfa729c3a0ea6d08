"""Measure how well the search finds: questions with known answers to scores."""
