"""WHAT WAS SAID TO WHOM, AND IN ANSWER TO WHAT? Messages to conversations, for all sources of mail."""
