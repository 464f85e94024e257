"""The one test function of the suite; ``conftest.py`` gives it each module's ``CASES``, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.case import Case

if TYPE_CHECKING:
    from conformance.suite import Suite


def check_case(case: Case, suite: Suite) -> None:
    """Runs a case against the session's target; fails, skips as not testable, or passes."""
    __tracebackhide__ = True
    suite.check(case)
