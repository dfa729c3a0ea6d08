"""Deadlines, timers, cancellable sockets and memory: nothing here knows of documents."""
