"""The authorization server (OAuth 2.1): programs ask people for access, and are given tokens for one resource each."""
