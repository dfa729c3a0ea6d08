"""The HTTP client of all sources: address guard, transport, rate limits, retries and pagination."""
