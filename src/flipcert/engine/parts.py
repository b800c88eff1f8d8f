"""Compiled functions as parts of one program, each analysed once and turned into machine code where Python calls.

numba compiles every function as if Python called it: a wrapper for that, one for C, all optimisations together with all
that it calls, machine code, a file in the cache. A chain of forty functions is optimised forty times, and once more for
each constant that an argument happens to be. Here a function is a *part*: its types are inferred and it is lowered,
once for the types of its arguments, whatever their values are. Where Python calls one, a *door* is made: a wrapper and
all parts that are behind it, optimised once, as one program. Doors alone have machine code and are cached.

Nothing else in the package may rely on how numba is built inside.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import Environment
from numba.core.typed_passes import AnnotateTypes, NativeLowering


def door_to(function: Callable[..., Any], cache: bool, **options: Any) -> Any:
    """Compile a function: a part of whatever compiled code calls it, and a door where Python does."""
    door: Any = njit(cache=cache, nogil=True, **options)(function)
    if not hasattr(door, "overloads"):
        return door  # NUMBA_DISABLE_JIT: the function itself
    part: Any = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_PartCompiler, **options)(function)
    part.add_overload = lambda result: part.overloads.update({tuple(result.signature.args): result})

    def compile_door(arguments: Any, return_type: Any) -> Any:
        with _no_garbage():
            part.compile(arguments)
            return _with_wrapper(part.overloads[tuple(arguments)])

    def call_from_part(arguments: Any, by_name: Any) -> Any:
        return part.get_call_template([types.unliteral(a) for a in arguments], by_name)

    door._compiler.compile = compile_door
    door.get_call_template = call_from_part
    door.get_overload = part.get_overload
    return door


class _Program(JITCodeLibrary):  # type: ignore[misc]
    """Machine code of a door: what a part needs is linked as well."""

    def add_linking_library(self, library: Any) -> None:
        needed = library._linking_libraries if isinstance(library, _Part) else ()
        for own in (library, *needed):
            if own not in self._linking_libraries:
                super().add_linking_library(own)


class _Part(_Program):
    """A lowered function that waits to be linked; it is not optimised with what it calls."""

    def finalize(self) -> None:
        self._finalized = True


def _with_wrapper(part: Any) -> Any:
    """The result of compiling a part with a wrapper, so that Python can call it."""
    context = part.target_context
    program = _Program(context.codegen(), part.library.name)
    program.enable_object_caching()
    program.add_linking_library(part.library)
    # What a wrapper needs of Python is cached, and found by name. Programs that hold the part are cached with what the
    # part needs, which is nothing: under the same name, a process that loads such a one first would take that for both.
    door = copy(part.fndesc)
    door.env_name += "_door"
    environment = Environment.from_fndesc(door)
    context.create_cpython_wrapper(program, door, environment, part.call_helper, release_gil=True)
    entry = context.get_executable(program, door, environment)
    return part._replace(library=program, fndesc=door, environment=environment, entry_point=entry, metadata={})


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    """Lowers a function, and leaves it at that."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags = state.flags.copy()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        # Callers find it by what would be the function that Python calls.
        state.targetctx.insert_user_function(lowered.fndesc, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=lowered.fndesc)
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """numba's own passes, but for the lowering; and no listing of types for people."""

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("part")
        for one, told in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if one is not AnnotateTypes:
                passes.add_pass(_PartLowering if one is NativeLowering else one, told)
        passes.finalize()
        return [passes]


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Look for no garbage meanwhile: among the many small objects of a compiler, that takes a tenth of its time."""
    looks = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looks:
            gc.enable()
