"""Servers that differ from the mock in one behaviour each, to show that the suite sees it.

`everything.ALL_BROKEN` lists them; `red_cases.json` holds, by name, the exact ids of the cases that turn red.
"""
