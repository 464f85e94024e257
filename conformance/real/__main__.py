"""``python -m conformance.real install|list|provenance|serve|remove``."""

import sys

from conformance.real.cli import main

sys.exit(main())
