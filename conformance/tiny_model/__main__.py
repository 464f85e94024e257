"""``python -m conformance.tiny_model write DIR [--checkpoint A|B]``."""

import sys

from conformance.tiny_model.cli import main

sys.exit(main())
