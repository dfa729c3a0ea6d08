"""Deadlines, timers, cancellable sockets and memory: nothing here depends on documents."""
