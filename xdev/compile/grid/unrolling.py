"""Which loops of a function are unrolled on CUDA, and how often.

By itself the compiler unrolls four times, and more often only the shortest loops. A
thread then comes back to a sector of 32 bytes that it reads along when other threads
have driven it out of the cache: eight neighbours of 4 bytes are a whole one. Of 4, 8
and 16 turns, 16 was the quickest on an H200: 4 % before CUDA C++, which does as much.
"""

from __future__ import annotations

from typing import Any

from xdev.compile.grid.spans import MARK

TURNS = 16
LONG = 200  # instructions of a loop as they come from Numba, most of which go away


def unroll(function: Any, ir: Any) -> None:
    """Ask for the unrolling of a function's innermost short loops over ranges.

    A loop that another way leads out of, or that calls a function, is left alone.

    Parameters
    ----------
    function : llvmlite.ir.Function
        The function, not yet handed to the compiler.
    ir : module
        llvmlite's ``ir``.
    """
    loops = _loops(function, ir)
    heads = {head for _, head in loops}
    for (last, head), body in loops.items():
        if heads & body != {head} or not any(
            getattr(one, "name", "").startswith(MARK) for one in head.instructions
        ):
            continue
        inside = [one for block in body for one in block.instructions]
        leaves = {b for b in body if any(t not in body for t in _targets(b, ir))}
        calls = any(isinstance(one, ir.CallInstr) for one in inside)
        if leaves == {head} and not calls and len(inside) <= LONG:
            _mark(function.module, last, ir)


def _mark(module: Any, last: Any, ir: Any) -> None:
    """Say to a loop's last branch how often the loop is unrolled."""
    times = ir.Constant(ir.IntType(32), TURNS)
    name = ir.MetaDataString(module, "llvm.loop.unroll.count")
    count = module.add_metadata([name, times])
    own = ir.MetaDataString(module, last.name)  # each loop has a node of its own,
    node = module.add_metadata([own, count])
    node.operands = (node, count)  # which LLVM knows by its pointing to itself
    last.terminator.set_metadata("llvm.loop", node)


def _targets(block: Any, ir: Any) -> list[Any]:
    """Return where a block may go on."""
    operands = getattr(block.terminator, "operands", ())
    return [one for one in operands if isinstance(one, ir.Block)]


def _loops(function: Any, ir: Any) -> dict[tuple[Any, Any], set[Any]]:
    """Return the blocks of each loop, by its last block and its first."""
    back: list[tuple[Any, Any]] = []
    before: dict[Any, list[Any]] = {}
    first = function.blocks[0]
    way, seen = [(first, iter(_targets(first, ir)))], {first}
    while way:
        block, following = way[-1]
        target = next(following, None)
        if target is None:
            way.pop()
            continue
        before.setdefault(target, []).append(block)
        if any(target is one for one, _ in way):
            back.append((block, target))
        elif target not in seen:
            seen.add(target)
            way.append((target, iter(_targets(target, ir))))
    found = {}
    for last, head in back:
        body, left = {head}, [last]
        while left:
            block = left.pop()
            if block not in body:
                body.add(block)
                left += before[block]
        found[last, head] = body
    return found
