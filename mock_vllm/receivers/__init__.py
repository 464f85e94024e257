"""How the tensors arrive: `tcp` (the TCP plane), `none` (metadata only)."""
