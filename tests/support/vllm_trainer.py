"""A trainer that sends with vLLM's own code, run by the Python of a managed environment.

    ENV/bin/python vllm_trainer.py URL plain|packed BUFFER_BYTES

Says ``ready``; then, for each line of standard input, the path of a safetensors file, sends that and says ``sent``.
Up to 0.27 the trainer's code broadcasts alone, and the calls are made here; from 0.28 on it makes them too. Pausing,
flushing and resuming are the caller's. Any failure ends it with a traceback and status 1, at the latest 60 s after it
began to send.
"""

from __future__ import annotations

import faulthandler
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

DEADLINE = 60.0


def free_port() -> int:
    """A port that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def post(url: str, body: dict[str, Any]) -> None:
    """One call; raises for anything but 2xx."""
    import requests

    answer = requests.post(url, json=body, timeout=DEADLINE)
    if not answer.ok:
        raise RuntimeError(f"{url} answered {answer.status_code}: {answer.text}")


def send_with_static_methods(module: Any, url: str, tensors: dict[str, Any], packed: bool, limit: int) -> None:
    """0.21.0 to 0.27.1."""
    engine = module.NCCLWeightTransferEngine
    rendezvous = {"master_address": "127.0.0.1", "master_port": free_port(), "world_size": 2}
    update: dict[str, Any] = {
        "names": list(tensors),
        "dtype_names": [str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()],
        "shapes": [list(tensor.shape) for tensor in tensors.values()],
    }
    if packed:
        update |= {"packed": True, "packed_buffer_size_bytes": limit}
    with ThreadPoolExecutor(1) as pool:
        init = {"init_info": {**rendezvous, "rank_offset": 1}}
        answer = pool.submit(post, f"{url}/init_weight_transfer_engine", init)
        group = engine.trainer_init(rendezvous)
        answer.result(DEADLINE)
        post(f"{url}/start_weight_update", {})
        answer = pool.submit(post, f"{url}/update_weights", {"update_info": update})
        arguments = module.NCCLTrainerSendWeightsArgs(group=group, packed=packed, packed_buffer_size_bytes=limit)
        engine.trainer_send_weights(iter(tensors.items()), arguments)
        answer.result(DEADLINE)
        post(f"{url}/finish_weight_update", {})


def send_with_trainer_engine(module: Any, url: str, tensors: dict[str, Any], packed: bool, limit: int) -> None:
    """0.28.0 on."""
    from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
    from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient

    class Source(WeightSource):
        def metadata(self) -> list[Any]:
            return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()]

        def __iter__(self) -> Any:
            return iter(tensors.items())

    info = module.NCCLTrainerInitInfo(
        rank=0,
        master_address="127.0.0.1",
        master_port=free_port(),
        world_size=2,
        packed=packed,
        packed_buffer_size_bytes=limit,
    )
    trainer = module.NCCLTrainerWeightTransferEngine.trainer_init(
        info, client=HTTPVLLMWeightSyncClient(url, timeout=DEADLINE), source=Source()
    )
    trainer.send_weights()
    trainer.shutdown()


def main(url: str, mode: str, limit: str) -> None:
    """Sends what standard input names, until it ends."""
    from safetensors.torch import load_file
    from vllm.plugins import load_general_plugins

    # As vLLM's own processes do.
    load_general_plugins()
    from vllm.distributed.weight_transfer import nccl_engine

    newer = hasattr(nccl_engine, "NCCLTrainerWeightTransferEngine")
    send = send_with_trainer_engine if newer else send_with_static_methods
    print("ready", flush=True)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(DEADLINE, exit=True)
        send(nccl_engine, url, load_file(line.strip()), mode == "packed", int(limit))
        faulthandler.cancel_dump_traceback_later()
        print("sent", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
