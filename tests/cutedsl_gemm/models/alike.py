"""What the tests of models draw, and how they compare gemm's results and gradients with torch's."""

import torch


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(shape).to(dtype)


def close(ours, theirs, within=1e-2):
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    return (ours.double() - theirs.double()).norm() <= within * theirs.double().norm()


def near(ours, theirs, within=1e-2):
    """`close`, and not because there is nothing but zeros."""
    assert theirs.any()
    return close(ours, theirs, within)


def assert_gradients_alike(models, inputs, results):
    """Those of the inputs and parameters of two models, ours and torch's, for one gradient."""
    dy = draw(*results[0].shape)
    for result in results:
        result.backward(dy)
    assert near(*(each.grad for each in inputs))
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        assert near(one.grad, other.grad)
        assert one.grad.stride() == one.stride()
