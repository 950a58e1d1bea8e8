"""In a container a share is of the cgroup's memory, not of the machine's."""

import pytest
from memory_laws import MACHINE

from xdev import memory

GIB = 1 << 30
V2, V1 = "memory.max", "memory.limit_in_bytes"


SYSTEMS = {
    "v2, in a container: its own cgroup is the top": ("0::/\n", {V2: 4 * GIB}, 4 * GIB),
    "v2, no limit": ("0::/\n", {V2: "max"}, MACHINE),
    "v2, nested": (
        "0::/user.slice/job\n",
        {f"user.slice/job/{V2}": 8 * GIB, f"user.slice/{V2}": 16 * GIB},
        8 * GIB,
    ),
    "v2, nested, the outer one is less": (
        "0::/a/b/c\n",
        {f"a/b/c/{V2}": "max", f"a/b/{V2}": 8 * GIB, f"a/{V2}": 2 * GIB},
        2 * GIB,
    ),
    "v2, a neighbour's limit is not ours": (
        "0::/a\n",
        {f"a/{V2}": "max", f"b/{V2}": GIB},
        MACHINE,
    ),
    "v2, a path with a colon": (
        "0::/job:7\n",
        {f"job:7/{V2}": 3 * GIB},
        3 * GIB,
    ),
    "v2, outside of what is visible": ("0::/../other\n", {V2: 6 * GIB}, 6 * GIB),
    "v1": (
        "5:memory:/docker/7\n3:cpu,cpuacct:/docker/7\n",
        {f"memory/docker/7/{V1}": 4 * GIB, f"memory/{V1}": 9223372036854771712},
        4 * GIB,
    ),
    "v1, in a container that sees the host's path": (
        "5:memory:/docker/7\n",
        {f"memory/{V1}": 5 * GIB},
        5 * GIB,
    ),
    "v1, no limit": ("5:memory:/\n", {f"memory/{V1}": 9223372036854771712}, MACHINE),
    "v1, memory with other controllers": (
        "5:cpuset,memory:/a\n",
        {f"memory/a/{V1}": GIB},
        GIB,
    ),
    "both, memory under v1": (
        "5:memory:/a\n1:name=systemd:/a\n0::/a\n",
        {f"memory/a/{V1}": 7 * GIB},
        7 * GIB,
    ),
    "other controllers only": (
        "3:cpu:/a\n",
        {f"cpu/a/{V1}": GIB, f"memory/a/{V1}": GIB},
        MACHINE,
    ),
    "more than the machine has": ("0::/\n", {V2: 2 * MACHINE}, MACHINE),
    "nothing to read": ("0::/gone\n", {}, MACHINE),
    "no cgroups": ("", {}, MACHINE),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_total_is_the_least_limit_that_holds_for_this_process(cgroups, name):
    membership, limits, total = SYSTEMS[name]
    assert cgroups(membership, limits) == total


def test_a_system_without_the_file_has_the_machines_memory(cgroups):
    assert cgroups("", {}, file="elsewhere") == MACHINE


def test_a_share_set_by_hand_is_too(cgroups):
    cgroups("5:memory:/a\n", {f"memory/a/{V1}": GIB})
    try:
        memory.set_limit("50%", "cpu")
        assert memory.get_limit("cpu") == GIB // 2
    finally:
        memory.set_limit(None, "cpu")
