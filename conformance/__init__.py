"""The conformance suite: what a vLLM server does on its weight-transfer routes, case by case, release by release."""

from conformance.runner import CaseResult, run, run_case

__all__ = ["CaseResult", "run", "run_case"]
