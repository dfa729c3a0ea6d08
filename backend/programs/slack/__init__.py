"""The bot that answers in Slack (the extra `slack`): in threads where it is mentioned, and in direct messages."""

from importlib.util import find_spec

from connectors.errors import NotConfiguredError

if find_spec("slack_sdk") is None:
    raise NotConfiguredError(
        "The Slack bot needs the extra `slack`: pip install 'quarry-search[slack]'"
    )
