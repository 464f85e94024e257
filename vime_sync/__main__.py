"""`python -m vime_sync`."""

import sys

from vime_sync.cli import main

if __name__ == "__main__":
    sys.exit(main())
