"""Mail as documents: one for each conversation. Shared by all sources of mail."""
