"""The conformance suite: what a vLLM server does on its weight-transfer routes, case by case, release by release."""
