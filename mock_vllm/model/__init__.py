"""What the mock serves: a model directory whose tensors are known, or a bare name that accepts any tensor."""
