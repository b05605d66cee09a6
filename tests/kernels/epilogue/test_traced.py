"""A function is traced once; and again where anything that it refers to is another."""

import functools
import sys
import types
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from cutedsl_gemm.kernels.epilogue.traced import function_key, traced

ALPHA = 2.0
own = types.ModuleType("own")
own.alpha = 3.0


def scale(x, by=2.0):
    return x * by


def test_a_lambda_that_is_made_anew_is_traced_once():
    first, second = (traced(lambda acc: F.gelu(scale(acc) * ALPHA)) for _ in range(2))
    assert first is second


def test_other_constants_are_another_epilogue(monkeypatch):
    def scaled(by):
        return lambda acc: acc * by

    def with_default(by):
        return lambda acc, by=by: acc * by

    def with_keyword(by):
        return lambda acc, *, by=by: acc * by

    def within(by):
        return lambda acc: (lambda x: x * by)(acc)

    for make in (scaled, with_default, with_keyword, within, lambda by: partial(scale, by=by)):
        texts = {str(traced(make(by))) for by in (2.0, 3, 0.0, -0.0)}
        assert len(texts) == 4, make
    for name, value in (("ALPHA", 5.0), ("scale", lambda x: x + 7)):
        before = traced(lambda acc: scale(acc) * ALPHA)
        monkeypatch.setitem(globals(), name, value)
        assert traced(lambda acc: scale(acc) * ALPHA) != before
    before = traced(lambda acc: acc * own.alpha)
    monkeypatch.setattr(own, "alpha", 4.0)
    assert traced(lambda acc: acc * own.alpha) != before


def test_what_may_change_is_traced_at_every_call():
    settings = {"alpha": 2.0}
    before = traced(lambda acc: acc * settings["alpha"])
    settings["alpha"] = 3.0
    assert traced(lambda acc: acc * settings["alpha"]) != before
    assert function_key(lambda acc: acc * settings["alpha"]) is None

    act = torch.nn.LeakyReLU(0.1)
    before = traced(act)
    act.negative_slope = 0.2
    assert traced(act) != before


def attributed(acc):
    return acc * attributed.by


def importing(acc):
    import own

    return acc * own.alpha


def of_a_class(acc):
    class Settings:
        alpha = ALPHA

    return acc * Settings.alpha


def test_what_a_function_reads_without_naming_it_is_traced_at_every_call(monkeypatch):
    monkeypatch.setitem(sys.modules, "own", own)
    settings = {"alpha": 2.0}
    get = settings.get
    readers = (
        lambda acc: attributed(acc),
        importing,
        of_a_class,
        lambda acc: acc * globals()["ALPHA"],
        lambda acc: acc * getattr(own, "alpha"),  # noqa: B009
        lambda acc: acc * vars(own)["alpha"],
        lambda acc: acc * get("alpha"),
    )
    texts = []
    for alpha in (2.5, 3.5):
        monkeypatch.setitem(settings, "alpha", alpha)
        monkeypatch.setitem(globals(), "ALPHA", alpha)
        monkeypatch.setattr(own, "alpha", alpha)
        monkeypatch.setattr(attributed, "by", alpha, raising=False)
        texts.append([str(traced(reader)) for reader in readers])
    assert texts == [["C  acc * 2.5"] * 7, ["C  acc * 3.5"] * 7]


def test_whether_a_module_has_a_name_is_asked_at_every_call(monkeypatch):
    asking = (
        lambda acc: acc * 2 if hasattr(own, "beta") else acc * 3,
        lambda acc: acc * 2 if "beta" in dir(own) else acc * 3,
    )
    without = [str(traced(each)) for each in asking]
    monkeypatch.setattr(own, "beta", 1, raising=False)
    assert without == ["C  acc * 3"] * 2
    assert [str(traced(each)) for each in asking] == ["C  acc * 2"] * 2


def test_defaults_belong_to_their_names():
    def scaled(acc, *, s=2.0, t=1.0):
        return acc * (s - t)

    scaled.__kwdefaults__ = {"s": 5.0, "t": 2.0}
    first = str(traced(scaled))
    scaled.__kwdefaults__ = {"t": 5.0, "s": 2.0}
    assert (first, str(traced(scaled))) == ("C  acc * 3", "C  acc * -3")


def test_a_function_that_wraps_torchs_or_that_torch_wraps_is_followed(monkeypatch):
    """functools.wraps says that its module is torch's; torch's decorators are functions of it."""

    def scaled(acc):
        return F.silu(acc) * ALPHA

    functions = [each(scaled) for each in (functools.wraps(F.silu), torch.no_grad())]
    before = [traced(lambda acc, f=f: f(acc)) for f in functions]
    monkeypatch.setitem(globals(), "ALPHA", 5.0)
    after = [traced(lambda acc, f=f: f(acc)) for f in functions]
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_true_is_not_one():
    def of(flag):
        return lambda acc: -acc if flag is True else acc + 1

    assert traced(of(1)) != traced(of(True))
    assert function_key(of(1)) is not None


def test_a_function_of_a_name_that_is_not_bound_yet_has_no_key():
    function = lambda acc: later(acc)  # noqa: E731
    assert function_key(function) is None
    later = scale
    assert function_key(function) is not None


def test_functions_that_eval_made_are_followed():
    def around(inner):
        return lambda acc: inner(acc) + 1

    assert eval("lambda x: x", {}).__module__ is None
    first, second = (traced(around(eval(text, {}))) for text in ("lambda x: x", "lambda x: -x"))
    assert (str(first), str(second)) == ("C  acc + 1", "C  -acc + 1")


@pytest.mark.parametrize("function", [F.gelu, torch.tanh, F.relu, partial(F.gelu)])
def test_torchs_own_functions_have_a_key(function):
    assert function_key(function) is not None
    assert traced(function) is traced(function)
