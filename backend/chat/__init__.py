"""From a conversation to a streamed, cited answer."""
