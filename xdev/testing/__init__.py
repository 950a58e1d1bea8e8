"""Stand-ins for tests: memory that is only numbers."""

from __future__ import annotations

from xdev.memory.sources.fake import FakeSource

__all__ = ["FakeSource"]
