"""The HTTP side: the release's routes, its error envelope, and the mock's own routes."""
