"""`python -m mock_vllm`: the same as the command `mock-vllm`."""

import sys

from mock_vllm.cli import main

if __name__ == "__main__":
    sys.exit(main())
