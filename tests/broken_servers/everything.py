"""The broken servers of all releases, in one list."""

from __future__ import annotations

from tests.broken_servers.catalogue import BROKEN
from tests.broken_servers.later_catalogue import LATER_BROKEN

ALL_BROKEN = [*BROKEN, *LATER_BROKEN]
