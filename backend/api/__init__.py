"""The HTTP API: routes, middleware, authentication and errors."""
