"""Calculations that a language model writes as Python, run where they reach nothing.

The code runs in a CPython that is compiled to a WebAssembly component without a single import: there is no function of
the host, and so no file, network, process or clock, that it could call. The component is run by a process of its own,
with limits, which ends with it.
"""
