"""TO BE WRITTEN."""

from __future__ import annotations

from .entry import Entry

ENTRIES: tuple[Entry, ...] = ()
