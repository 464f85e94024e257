"""A vLLM plugin that lets vLLM's own NCCL weight-transfer engine, and its trainer's side, run without a GPU.

vLLM loads `weight_plane.register:register` in every process (entry-point group `vllm.general_plugins`). It swaps
three things and leaves the rest of vLLM alone:

* the process group: an NCCL communicator becomes a `PlaneCommunicator`, which speaks the TCP plane;
* the CUDA streams: no-ops;
* the device `cuda`: `cpu`, inside the engine's methods only.

`weight_plane.extension.ReceivedWeights` is a worker extension (`--worker-extension-cls`) that tells what arrived.
"""
