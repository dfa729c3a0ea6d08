"""Slack: threads of channels and conversations with their readers, by the Web API or from an export."""
