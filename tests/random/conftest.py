"""Generators of each device."""

import sys
from pathlib import Path

import pytest

import xdev

ROOM = Path(__file__).parent
sys.path += map(str, (ROOM, ROOM.parent))  # for what files share


@pytest.fixture
def make(device):
    return lambda seed=0: xdev.random.default_rng(seed, device)


@pytest.fixture
def rng(make):
    return make(20251121)
