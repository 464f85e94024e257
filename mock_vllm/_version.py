"""The project's version, in one place for the mock."""

__version__ = "0.1.0"
