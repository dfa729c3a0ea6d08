"""A server of the Model Context Protocol: agents search, read, ask and research what their asker may read.

The protocol: https://modelcontextprotocol.io/specification/2025-11-25, and 2026-07-28, which has no sessions.
"""
