"""Two GPUs: each product runs on the device of its tensors, whichever device is current."""

import pytest
import torch
from on_gpu import integers, plan_of, poisoned, product

from cutedsl_gemm import gemm
from cutedsl_gemm.kernels.copies.plan import copy_plans
from tests.cutedsl_gemm.distributed import ranks, test_sharding

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]

DEVICES = "cuda:0", "cuda:1"
# One kernel, split-K, and copies of A and B
SHAPES = [(520, 264, 136), (128, 256, 8192), (511, 257, 383)]
planned = pytest.mark.compiles(plans=lambda mnk: (plan_of(mnk), copy_plans()))
each_shape = pytest.mark.parametrize("mnk", SHAPES, ids=str)


def operands(mnk, device):
    m, n, k = mnk
    return integers(m, k, device=device), integers(k, n, device=device)


@planned
@each_shape
@pytest.mark.parametrize("current", DEVICES)
def test_a_product_runs_on_the_device_of_its_tensors(mnk, current):
    with torch.cuda.device(current):
        for device in (*DEVICES, *DEVICES):
            a, b = operands(mnk, device)
            c = gemm(a, b)
            assert c.device == torch.device(device)
            assert torch.equal(c, product(a, b))
            gemm(a, b, out=c.fill_(torch.nan))
            assert torch.equal(c, product(a, b))
        assert torch.cuda.current_device() == int(current[-1])


@planned
@each_shape
def test_devices_run_at_the_same_time_on_streams_of_their_own(mnk):
    matrices = {device: operands(mnk, device) for device in DEVICES}
    streams = {device: torch.cuda.Stream(device) for device in DEVICES}
    results = {device: [] for device in DEVICES}
    for device in DEVICES:
        torch.cuda.synchronize(device)
    for _ in range(20):
        for device, (a, b) in matrices.items():
            with torch.cuda.stream(streams[device]):
                results[device].append(gemm(a, b))
    for device, (a, b) in matrices.items():
        streams[device].synchronize()
        assert all(torch.equal(c, product(a, b)) for c in results[device])


@planned
@each_shape
def test_a_graph_of_the_second_device_is_replayed_there(mnk):
    a, b = operands(mnk, DEVICES[1])
    with torch.cuda.device(DEVICES[1]):
        out = poisoned(*mnk[:2], a.dtype)
        gemm(a, b, out=out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # torch's own is the first GPU's
            gemm(a, b, out=out)
        out.fill_(torch.nan)
        graph.replay()
        assert torch.equal(out, product(a, b))


def test_tensors_of_two_devices_are_refused():
    a, b = (integers(16, 16, device=device) for device in DEVICES)
    with pytest.raises(ValueError, match="they must share a device"):
        gemm(a, b)
    gemm(a, a)
    with pytest.raises(ValueError, match="they must share a device"):
        gemm(a, a, out=b)


@pytest.mark.within(300)  # it compiles what it launches
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("way", ["tensor", "data"])
def test_two_gpus_train_by_tensor_and_data_parallelism(tmp_path, way):
    """Layers of gemm, and converted models, as torch's own: by NCCL."""
    options = {"backend": "nccl", "seconds": 240}
    ranks.run(test_sharding.blocks, 2, tmp_path / "store", (way,), "cuda", **options)
