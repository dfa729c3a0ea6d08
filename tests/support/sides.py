"""Where a message may be searched, with every switch on."""

from backend.chat.intent.search_plan import Side

BOTH_SIDES = frozenset(Side)
