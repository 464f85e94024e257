"""The cases, by protocol phase. Each module holds a list ``CASES`` and lets pytest run it."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from conformance.case import Case


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case of the suite, in the order of its modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith("test_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(case for module in modules for case in module.CASES)
