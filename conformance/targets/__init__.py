"""What the suite can be pointed at: a mock, or a server by its URL."""
