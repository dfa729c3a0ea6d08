"""Slack, as its API and its exports tell it: what was said where, by whom, and who may read it."""
