"""The process that runs one calculation: it limits itself, loads the component, calls it once and ends.

The component has no imports, so that the limits here are a second wall: for the time and memory that it may take, and
in case the WebAssembly runtime has a fault.
"""

import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

from wasmtime import Config, Engine, Store, WasmtimeError
from wasmtime.component import Component, Func, Linker

from backend.research.calculations.process_protocol import LOAD_FAILED, MOST_OUTPUT

CPU_SECONDS = 10
MEMORY_BYTES = 256 << 20
"""Of the component. What the process takes besides is as much again, for the output on its way."""
PROCESS_BYTES = 1 << 30
_NOBODY = 65534
_REASONS = {
    "call stack exhausted": "it calls itself too deeply",
    "unreachable": "it asks for what a calculation has not: files, the network, processes or a source of random numbers",
}


def run_standard_input() -> None:
    """Run the code on standard input, and write what comes of it to standard output as a JSON object.

    The arguments are the compiled component, and the time that the code is given, in seconds since 1970.
    """
    compiled, now = sys.argv[1:]
    asked = sys.stdin.buffer.read().decode()
    limit_process()
    try:
        store, calculate = load_component(Path(compiled))
    except WasmtimeError:
        sys.exit(LOAD_FAILED)
    give_up_rights()
    try:
        output, problem = calculate(store, asked, float(now))
    except WasmtimeError as error:
        output, problem = "", explain_trap(str(error))
    json.dump({"output": output[: MOST_OUTPUT + 1], "problem": problem[:MOST_OUTPUT]}, sys.stdout)


def limit_process() -> None:
    """Limit what this process may take until it ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_BYTES, PROCESS_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def make_engine() -> Engine:
    """Return an engine with the settings that a component is compiled with, and has to be loaded with."""
    config = Config()
    config.wasm_component_model = True
    return Engine(config)


def load_component(compiled: Path) -> tuple[Store, Func]:
    """Return the component's one function, with the store that it runs in."""
    engine = make_engine()
    store = Store(engine)
    store.set_limits(memory_size=MEMORY_BYTES)
    # No definitions are added to the linker: a component with an import could not be instantiated.
    instance = Linker(engine).instantiate(store, Component.deserialize_file(engine, str(compiled)))
    calculate = instance.get_func(store, "calculate")
    if calculate is None:
        raise WasmtimeError("the component has no function of this name")
    return store, calculate


def give_up_rights() -> None:
    """Let this process open nothing and start nothing any more, also where it was started by root."""
    if os.geteuid() == 0:
        # Within some containers there is no such user.
        with suppress(OSError):
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def explain_trap(message: str) -> str:
    """Say for people why the component was stopped."""
    cause = message.rpartition("Caused by:")[2]
    found = (reason for sign, reason in _REASONS.items() if sign in cause)
    return next(found, "it broke its Python")
