"""Products of DTensors are torch's: the values, the placements, and the gradients of both."""

from itertools import product

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    _dtensor_spec,
    distribute_tensor,
)
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional as F

from cutedsl_gemm import addmm, convert, gemm, gemm_reduce_scatter, linear, mlp, plan_for, swiglu
from cutedsl_gemm.distributed import sharded_linear
from cutedsl_gemm.distributed.sharding import linear_in, rules
from cutedsl_gemm.kernels.epilogue.evaluate import REDUCTIONS, evaluate
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.sm90.rungs import pingpong
from cutedsl_gemm.models import faster, faster_mlp
from cutedsl_gemm.select import choose
from cutedsl_gemm.select.candidate import Candidate
from tests.cutedsl_gemm.distributed.ranks import run
from tests.kernels.epilogue.expressions import SHAPES, Expression, expressions

# of torch's own code
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

R, ROWS, COLUMNS = Replicate(), Shard(0), Shard(1)
M, N, K = 4, 6, 8


def draw(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def near(ours, theirs, within=1e-2):
    ours, theirs = (each.detach().double() for each in (ours, theirs))
    assert ours.shape == theirs.shape
    assert (ours - theirs).norm() <= within * theirs.norm()


# --- each rule, in fp64, without processes


def parts(tensor, placement):
    """What each of two ranks has of a tensor; of a partial sum, two tensors of this sum."""
    if isinstance(placement, Shard):
        return tensor.chunk(2, placement.dim)
    if isinstance(placement, Partial):
        noise = torch.randn_like(tensor)
        return noise, tensor - noise
    return tensor, tensor


def whole(shards, placement):
    """The tensor of which two ranks have these parts."""
    if isinstance(placement, Shard):
        return torch.cat(shards, placement.dim)
    if isinstance(placement, Partial):
        combine = {"sum": torch.add, "max": torch.maximum, "min": torch.minimum}
        return combine[placement.reduce_op](*shards)
    assert torch.equal(*shards)
    return shards[0]


def results(epilogue, a, b, operands):
    values = evaluate(epilogue, tuple(a @ each for each in b), operands)
    return [
        REDUCTIONS[each.reduction](value, 0 if each.over == "M" else 1) if each.reduction else value
        for each, value in zip(epilogue.results, values, strict=True)
    ]


def divided(epilogue, invariant):
    """The rules of an epilogue, each found to give the results of one process."""
    sizes = {"M": M, "N": N, "1": 1}
    count = epilogue.accumulators
    a, b = torch.randn(M, K).double(), torch.randn(count, K, N).double()
    numbers = [each.by_value for each in epilogue.operands]
    shapes = [SHAPES[each.name] for each in epilogue.operands]
    operands = [torch.randn([sizes[mode] for mode in shape]).double() for shape in shapes]
    pairs = zip(shapes, numbers, strict=True)
    tensors = tuple(shape.replace("1", ".") for shape, number in pairs if not number)
    wanted = results(epilogue, a, b, operands)
    known = rules(epilogue, tensors, invariant, even=True)
    for rule in known:
        outs, of_a, of_b, *rest = rule[: len(wanted)], *rule[len(wanted) :]
        if count == 1 and isinstance(of_b, Shard):
            of_b = Shard(of_b.dim + 1)
        placed = iter(rest)
        places = [R if number else next(placed) for number in numbers]
        shares = zip(*map(parts, operands, places), strict=True) if operands else ((), ())
        triples = zip(parts(a, of_a), parts(b, of_b), shares, strict=True)
        found = [results(epilogue, *each) for each in triples]
        for place, out in enumerate(outs):
            near(whole([each[place] for each in found], out), wanted[place], 1e-5)
    return known


@given(st.sampled_from((1, 2)).flatmap(lambda n: expressions(smooth=True, accumulators=n)))
def test_each_rule_gives_the_results_of_one_process(expression):
    divided(expression.epilogue, False)
    assert not any(Partial() in rule for rule in divided(expression.epilogue, True))


@pytest.mark.parametrize(
    ("source", "operands", "addends"),
    [
        ("lambda acc: acc", (), [set()]),
        ("lambda acc: (acc * 2, -acc / 3, acc.sum(dim=0), acc.sum(dim=1))", (), [set()]),
        ("lambda acc, row: acc + row", ("row",), [{0}]),
        ("lambda acc, column: acc * column", ("column",), [set()]),
        ("lambda acc, alpha, matrix: acc * alpha - matrix", ("alpha", "matrix"), [{0}]),
        ("lambda acc, row, scalar: (acc - row) * scalar", ("row", "scalar"), [{0}]),
        ("lambda acc, row, column: acc + row * column", ("row", "column"), [{0}, {1}]),
        ("lambda gate, up, row: gate - up * row", ("row",), [set()]),
        ("lambda acc: acc + 1", (), []),
        ("lambda acc: acc * acc", (), []),
        ("lambda acc, row: row / acc", ("row",), []),
        ("lambda acc, row: (acc, acc + row, acc * row)", ("row",), []),
        ("lambda acc, row: (acc, row * 2 + 0 * acc)", ("row",), [{0}]),
        ("lambda acc: (acc, acc.amax(dim=0))", (), []),
        ("lambda acc: F.gelu(acc)", (), []),
        ("lambda gate, up: gate * up", (), []),
        ("lambda acc: acc.bfloat16() * 2", (), []),
    ],
)
def test_k_is_divided_where_the_epilogue_is_linear_and_nowhere_else(source, operands, addends):
    epilogue = Expression(source, operands, 2 if "gate" in source else 1).epilogue
    assert [set(each) for each in linear_in(epilogue)] == addends
    divided(epilogue, False)


def test_a_rule_that_divides_an_extremum_needs_no_empty_shard():
    epilogue = trace(lambda acc: acc.amax(dim=0))
    assert [Partial("max"), ROWS, R] in rules(epilogue, (), False, even=True)
    assert [Partial("max"), ROWS, R] not in rules(epilogue, (), False, even=False)


@pytest.mark.skipif(not hasattr(_dtensor_spec, "ShardOrderEntry"), reason="an older torch")
def test_shards_that_two_dimensions_of_a_mesh_divide_in_another_order_are_left_to_torch(one_rank):
    mesh, dtype = init_device_mesh("cpu", (1, 1)), torch.bfloat16
    x, weight = (_dtensor_spec.TensorMeta(torch.Size((m, K)), (K, 1), dtype) for m in (M, N))
    x = _dtensor_spec.DTensorSpec(mesh, (R, R), x)
    for order, taken in ((0, 1), True), ((1, 0), False):
        entry = _dtensor_spec.ShardOrderEntry(tensor_dim=0, mesh_dims=order)
        rows = _dtensor_spec.DTensorSpec(mesh, (ROWS, ROWS), weight, shard_order=(entry,))
        assert (sharded_linear._made(x, rows, None) is not None) == taken


def test_what_a_frozen_weight_needs_not_is_not_saved(one_rank, on_the_executor, monkeypatch):
    monkeypatch.setattr(choose, "best", lambda problem: Candidate(pingpong, (64, 16, 32)))
    mesh = init_device_mesh("cpu", (1,))
    x, weight = (distribute_tensor(draw(*of), mesh, [R]) for of in ((M, K), (N, K)))
    a, b = draw(M, K).requires_grad_(), draw(K, N)
    products = (
        lambda: faster.linear(x.requires_grad_(), weight),
        lambda: gemm_reduce_scatter(a, b),
    )
    saved = []
    with saved_tensors_hooks(lambda each: saved.append(each.shape) or each, lambda each: each):
        results = [each() for each in products]
    for y in results:
        y.sum().backward()
    assert x.shape not in saved
    near(a.grad, torch.ones(M, N) @ b.float().mT)


# --- processes


def small_tiles():
    """gemm chooses tiles which the executor computes fast: the plan does not matter here."""
    choose.best = lambda problem: Candidate(pingpong, (64, 16, 32))
    faster.DEVICES = ("cpu", "cuda")
    faster.LEAST_TRAINED = faster_mlp.LEAST_TRAINED_FUSED = 0


def gradients(out, leaves, dy):
    return torch.autograd.grad(out.redistribute(placements=dy.placements), leaves, dy)


def against_torch(ours, theirs, tensors, placements, mesh):
    """Both functions of these tensors have one placement and one value, and so do the gradients."""
    leaves = [
        distribute_tensor(each, mesh, [where] * mesh.ndim).requires_grad_()
        for each, where in zip(tensors, placements, strict=True)
    ]
    mine, wanted = ours(*leaves), theirs(*leaves)
    assert mine.placements == wanted.placements, (placements, mine.placements, wanted.placements)
    near(mine.full_tensor(), wanted.full_tensor())
    dy = distribute_tensor(draw(*mine.shape, seed=7), mesh, [R] * mesh.ndim)
    pairs = zip(gradients(mine, leaves, dy), gradients(wanted, leaves, dy), strict=True)
    for found, known in pairs:
        assert found.placements == known.placements
        near(found.full_tensor(), known.full_tensor(), 2e-2)


def fused(a, b, c):
    return gemm(a, b, epilogue=lambda acc, c: F.gelu(acc + c), c=c)


FUNCTIONS = {
    "gemm": (gemm, torch.mm, 2),
    "addmm": (lambda a, b, c: addmm(c, a, b), lambda a, b, c: torch.addmm(c, a, b), 3),
    "converted": (
        lambda a, b, c: faster.linear(a, b.mT, c),
        lambda a, b, c: F.linear(a, b.mT, c),
        3,
    ),
    "converted, no bias": (lambda a, b: faster.linear(a, b.mT), torch.mm, 2),
    "gelu": (fused, lambda a, b, c: F.gelu(torch.addmm(c, a, b)), 3),
}


TYPICAL = (ROWS, R), (R, COLUMNS), (COLUMNS, ROWS), (R, ROWS)
PAIRS = tuple(product((R, ROWS, COLUMNS), repeat=2))


def as_torch(name, mesh_shape, sizes, pairs=PAIRS):
    small_tiles()
    mesh = init_device_mesh("cpu", mesh_shape)
    ours, theirs, count = FUNCTIONS[name]
    m, n, k = sizes
    tensors = [draw(m, k, seed=1), draw(k, n, seed=2), draw(n, seed=3)][:count]
    for a, b in pairs:
        try:
            against_torch(ours, theirs, tensors, (a, b, R)[:count], mesh)
        except Exception as error:
            raise AssertionError(f"{name} of {a} and {b}") from error


def batch_as_torch(mesh_shape, count, pairs):
    """A batch of `count` products, by gemm as by torch.bmm; and with a bias of each."""
    small_tiles()
    mesh = init_device_mesh("cpu", mesh_shape)
    a, b, bias = draw(count, 8, 32, seed=1), draw(count, 32, 16, seed=2), draw(count, 1, 16, seed=3)

    def biased(a, b, bias):
        return gemm(a, b, epilogue=lambda acc, bias: acc + bias, bias=bias)

    def by_torch(a, b, bias):
        return torch.baddbmm(bias, a, b)

    for of_a, of_b in pairs:
        against_torch(gemm, torch.bmm, (a, b), (of_a, of_b), mesh)
        for of_bias in (R, of_a) if of_a == Shard(0) else (R,):
            against_torch(biased, by_torch, (a, b, bias), (of_a, of_b, of_bias), mesh)


def each_as_torch(mesh_shape, sizes):
    for name in FUNCTIONS:
        as_torch(name, mesh_shape, sizes)
    places = R, *map(Shard, range(3))
    batch_as_torch(mesh_shape, sizes[0], product(places, repeat=2))


def typical():
    for name in ("gemm", "converted, no bias", "gelu"):
        as_torch(name, (2,), (8, 16, 32), TYPICAL)
    matrices, columns, rows = map(Shard, (0, 2, 1))  # columns of a and rows of b are K
    batch_as_torch((2,), 4, [(matrices, matrices), (rows, R), (R, columns), (columns, rows)])
    options_and_refusals()


@pytest.mark.slow
def test_two_ranks_compute_what_torch_computes(tmp_path):
    run(typical, 2, tmp_path / "store")


def outside_the_mesh():
    """A rank that has no part gets an empty result, as torch's."""
    small_tiles()
    mesh = DeviceMesh("cpu", [0, 1])
    x, weight, bias = (
        distribute_tensor(draw(*of), mesh, [placement])
        for of, placement in (((8, 16), R), ((24, 16), ROWS), ((24,), ROWS))
    )
    for made in (linear(x, weight, bias), faster.linear(x, weight, bias)):
        assert made.placements == (COLUMNS,)
        assert made.to_local().numel() == (0 if dist.get_rank() == 2 else 8 * 12)


@pytest.mark.slow
def test_a_rank_outside_the_mesh_multiplies_nothing(tmp_path):
    run(outside_the_mesh, 3, tmp_path / "store")


def options_and_refusals():
    small_tiles()
    mesh = init_device_mesh("cpu", (2,))
    a, b = (distribute_tensor(draw(16, 16), mesh, [each]) for each in (COLUMNS, ROWS))
    assert gemm(a, b).placements == gemm(a, b, tile=(64, 64, 64)).placements == (Partial(),)
    exact = gemm(a, b, invariant=True)  # after a product that divides the sum, of the same tensors
    assert not exact.placements[0].is_partial()
    assert torch.equal(exact.full_tensor(), gemm(draw(16, 16), draw(16, 16), invariant=True))
    twice = gemm(a, b, invariant=True, epilogue=lambda acc: acc * 2)
    assert not twice.placements[0].is_partial()
    assert gemm(a, b, epilogue=lambda acc: acc * 2).placements == (Partial(),)
    assert gemm(a, b, epilogue=lambda acc: acc.relu()).placements != (Partial(),)
    rows = distribute_tensor(draw(16, 16), mesh, [ROWS])
    plain = draw(16, 16)
    for alpha in (2, 3):  # torch remembers how it divided the first
        found = addmm(rows, rows, rows, alpha=alpha).full_tensor()
        near(found, torch.addmm(plain, plain, plain, alpha=alpha))
    for call, words in (
        (lambda: gemm(a, b, out=b), "omit out"),
        (lambda: gemm(a, b, out=b, epilogue=torch.relu), "omit out"),
        (lambda: gemm(draw(16, 16), b), "convert all torch.Tensor to DTensor"),
        (lambda: linear(draw(16, 16), b), "convert all torch.Tensor to DTensor"),
        (lambda: plan_for(a, b), "to_local"),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError), match=words):
            call()


def reductions(acc):
    return acc.sum(dim=0), acc.amax(dim=0), acc.amin(dim=1), acc.sum(dim=1), acc * 2


def layers():
    """Layers whose tensors are divided as tensor parallelism divides them, and other ways."""
    small_tiles()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    x, w1, b1, w2, b2 = (
        draw(*shape, seed=i)
        for i, shape in enumerate(((4, 8, 16), (32, 16), (32,), (16, 32), (16,)))
    )
    halves = draw(32, 16, seed=9)
    for m, placements in product((5, 8), ((ROWS, R), (R, COLUMNS), (COLUMNS, ROWS))):
        a, b = draw(m, 16, seed=3), draw(16, 8, seed=4)
        pair = (
            distribute_tensor(each, mesh, [where])
            for each, where in zip((a, b), placements, strict=True)
        )
        acc, found = a.float() @ b.float(), gemm(*pair, epilogue=reductions)
        for mine, wanted in zip(found, reductions(acc), strict=True):
            near(mine.full_tensor(), wanted)
    for function, tensors, placements in (
        (lambda *each: mlp(*each), (x, w1, b1, w2, b2), (R, ROWS, ROWS, COLUMNS, R)),
        (swiglu, (x, halves), (R, ROWS)),
        (swiglu, (x, halves), (Shard(2), COLUMNS)),
        (swiglu, (x, halves), (ROWS, R)),
        (swiglu, (x, halves), (Shard(1), R)),
        (linear, (x, halves), (Shard(1), ROWS)),
        (linear, (x, halves), (Shard(1), R)),
    ):
        leaves = [
            distribute_tensor(each, mesh, [where]).requires_grad_()
            for each, where in zip(tensors, placements, strict=True)
        ]
        plain = [each.clone().requires_grad_() for each in tensors]
        mine, wanted = function(*leaves), function(*plain)
        near(mine.full_tensor(), wanted)
        dy = draw(*wanted.shape, seed=8)
        found = gradients(mine, leaves, distribute_tensor(dy, mesh, [R]))
        for each, known in zip(found, torch.autograd.grad(wanted, plain, dy), strict=True):
            near(each.full_tensor(), known, 2e-2)


def batches():
    """Batches (B, S, K) whose sequence is divided, and partial sums of them."""
    small_tiles()
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (ranks,))
    weight = draw(32, 16, seed=1)
    shared = distribute_tensor(weight, mesh, [R])
    layers = (
        lambda x, weight: linear(x, weight, None, "gelu"),
        swiglu,
        lambda x, weight: mlp(x, weight, None, weight.mT.contiguous(), None),
    )
    for uneven in ((2, 9, 16), (3, 8, 16), (2, 3, 8, 16)):
        x = draw(*uneven, seed=2)
        found = layers[0](distribute_tensor(x, mesh, [Shard(int(uneven[0] == 2))]), shared)
        near(found.full_tensor(), layers[0](x, weight))
    for layer in layers:
        x = draw(2, 8, 16, seed=2)
        divided = distribute_tensor(x, mesh, [Shard(1)])
        with CommDebugMode() as counted:
            found = layer(divided, shared)
        assert found.placements == (Shard(1),)
        assert found.to_local().is_contiguous()
        assert counted.get_total_counts() == 0
        near(found.full_tensor(), layer(x, weight))
        local = draw(2, 8, 16, seed=3 + dist.get_rank())
        partial = DTensor.from_local(local, mesh, [Partial()])
        whole = partial.full_tensor()
        near(layer(partial, shared).full_tensor(), layer(whole, weight))


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_batch_whose_sequence_is_divided_needs_no_communication(tmp_path, ranks):
    """Of partial sums, torch may divide rows that are no whole samples: they are gathered."""
    run(batches, ranks, tmp_path / "store")


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("ranks", [2, 4])
def test_layers_of_dtensors_are_those_of_one_process(tmp_path, ranks):
    run(layers, ranks, tmp_path / "store")


class Linear(nn.Linear):
    def forward(self, x):
        return linear(x, self.weight, self.bias)


class Block(nn.Module):
    """A norm and two layers, of gemm or of torch, with the same weights."""

    def __init__(self, layer):
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.LayerNorm(16, dtype=torch.bfloat16)
        self.up = layer(16, 32, dtype=torch.bfloat16)
        self.down = layer(32, 16, dtype=torch.bfloat16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(16, 32, bias=False) for _ in range(2))
        self.down = nn.Linear(32, 16)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Gated(nn.Module):
    """A norm and a gated MLP of torch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.mlp = nn.LayerNorm(16), Gate()
        self.to(torch.bfloat16)

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def parallel(block, mesh):
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "up": ColwiseParallel(input_layouts=Shard(0)),
        "down": RowwiseParallel(output_layouts=Shard(0)),
        "mlp.gate": ColwiseParallel(input_layouts=Shard(0)),
        "mlp.up": ColwiseParallel(input_layouts=Shard(0)),
        "mlp.down": RowwiseParallel(output_layouts=Shard(0)),
    }
    names = {name for name, _ in block.named_modules()}
    return parallelize_module(block, mesh, {name: plan[name] for name in plan if name in names})


def sharded_data(block, mesh):
    for each in (*block.children(), block):
        fully_shard(each, mesh=mesh)
    return block


def train(block, x, steps=1):
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        block(x).float().square().mean().backward()
        optimizer.step()
    return [getattr(each, "full_tensor", lambda each=each: each)() for each in block.parameters()]


def blocks(names, device="cpu"):
    small_tiles()
    size, rank = dist.get_world_size(), dist.get_rank()
    x = draw(8, 16, seed=5).chunk(size)[rank].to(device)  # this rank's rows
    line = init_device_mesh(device, (size,))
    square = init_device_mesh(device, (2, size // 2), mesh_dim_names=("data", "tensor"))
    ways = {
        "tensor": lambda block: parallel(block, line),
        "data": lambda block: sharded_data(block, line),
        "both": lambda block: sharded_data(parallel(block, square["tensor"]), square["data"]),
    }
    torchs, ours, gated = (
        lambda: Block(nn.Linear).to(device),
        lambda: Block(Linear).to(device),
        lambda: Gated().to(device),
    )
    for name in names:
        way = ways[name]
        for wanted, *blocks in (
            (way(torchs()), way(ours()), way(convert(torchs()))),
            (way(gated()), way(convert(gated())), convert(way(gated()))),
        ):
            known = train(wanted, x)
            for block in blocks:
                for mine, theirs in zip(train(block, x), known, strict=True):
                    near(mine, theirs)
    runs = *faster._runs.values(), *faster._trained.values()
    assert any(runs)  # of the layers that are converted
    assert any(faster_mlp._calls.values()) or "data" not in names


@pytest.mark.slow
def test_two_ranks_train_by_tensor_sequence_and_data_parallelism(tmp_path):
    run(blocks, 2, tmp_path / "store", ("tensor", "data"))


@pytest.mark.slow
@pytest.mark.deep
def test_four_ranks_train_by_tensor_and_data_parallelism_together(tmp_path):
    run(blocks, 4, tmp_path / "store", ("tensor", "data", "both"))


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("mesh", "sizes"),
    [((2,), (8, 16, 32)), ((3,), (8, 10, 32)), ((2, 2), (8, 16, 32)), ((4,), (5, 7, 9))],
)
def test_more_ranks_and_uneven_shards_compute_what_torch_computes(tmp_path, mesh, sizes):
    run(each_as_torch, torch.Size(mesh).numel(), tmp_path / "store", mesh, sizes, seconds=180)


def compiled():
    small_tiles()
    mesh = init_device_mesh("cpu", (2,))
    x, weight = (
        distribute_tensor(draw(8, 16), mesh, [R]),
        distribute_tensor(draw(32, 16), mesh, [ROWS]),
    )
    weight.requires_grad_()
    bias = distribute_tensor(draw(32, seed=2), mesh, [ROWS])
    residual = distribute_tensor(draw(8, 32, seed=3), mesh, [COLUMNS])
    layers = (
        lambda x, weight: linear(x, weight, None, "gelu"),
        lambda x, weight: faster.linear(x, weight),
        lambda x, weight: faster.linear(x, weight, bias),
        lambda x, weight: faster.linear(x, weight, residual),
    )
    for layer in layers:
        mine = torch.compile(layer, backend="aot_eager", fullgraph=True)(x, weight)
        wanted = layer(x, weight)
        assert mine.placements == wanted.placements == (COLUMNS,)
        near(mine.full_tensor(), wanted.full_tensor())
        for out in (mine, wanted):
            out.sum().backward()
        assert weight.grad.placements == (ROWS,)


@pytest.mark.slow
@pytest.mark.deep
def test_torch_compile_traces_products_of_dtensors(tmp_path):
    run(compiled, 2, tmp_path / "store")


def crash():
    small_tiles()
    mesh = init_device_mesh("cpu", (2,))
    a, b = (distribute_tensor(draw(8, 8), mesh, [each]) for each in (COLUMNS, ROWS))
    found = gemm(a, b)
    if dist.get_rank() == 1:
        raise RuntimeError("rank 1 has failed")
    found.full_tensor()  # waits for rank 1


@pytest.mark.slow
def test_the_crash_of_a_rank_ends_the_others_with_a_message(tmp_path):
    with pytest.raises(AssertionError) as caught:
        run(crash, 2, tmp_path / "store")
    message = str(caught.value)
    assert "rank 1 has failed" in message
    assert "rank 0:" in message  # gloo's error, of the closed connection
    assert "did not end" not in message
