"""Faults of converted models: another product, another weight, a hook that is not called."""

from __future__ import annotations

from .fault import Fault

CALLS = "cutedsl_gemm/linear_calls.py"
LINEAR = "cutedsl_gemm/models/faster.py"
MLP = "cutedsl_gemm/models/faster_mlp.py"
TENSORS = "cutedsl_gemm/tensors.py"
CONVERSION = "cutedsl_gemm/models/conversion.py"
RECOGNITION = "cutedsl_gemm/models/recognition.py"
MODE = "cutedsl_gemm/models/mode.py"
PAIRS = "cutedsl_gemm/pairs.py"

FAULTS = (
    Fault(
        "no_autocast",
        LINEAR,
        "    if torch._C._is_any_autocast_enabled():\n",
        "    if False:\n",
        "Under torch.autocast a layer computes in float32.",
    ),
    Fault(
        "autocast_of_any_dtype",
        LINEAR,
        "each.dtype not in AUTOCAST or ",
        "",
        "Under torch.autocast a product of float64 is rounded to bfloat16.",
    ),
    Fault(
        "hidden_from_modes",
        CALLS,
        "    if torch._C._len_torch_dispatch_stack():\n        run = operator\n",
        "",
        "A counter of FLOPs does not see a layer, nor does activation checkpointing by operators.",
    ),
    Fault(
        "no_preference",
        LINEAR,
        "if mnk and beats_torch(*mnk) else None",
        "if mnk else None",
        "A layer becomes slower than torch's where cuBLAS is faster.",
    ),
    Fault(
        "gradient_of_x_by_the_weight",
        CALLS,
        "linear(rows, weight.mT, None), grad) if needs_x",
        "linear(rows, weight, None), grad) if needs_x",
        "A square layer has another layer's gradient.",
    ),
    Fault(
        "inputs_of_frozen_weights_kept",
        CALLS,
        "x if needs_weight else None, weight if needs_x else None",
        "x, weight",
        "Frozen layers beside LoRA keep their inputs for the backward pass.",
    ),
    Fault(
        "negative_weights_by_address",
        CALLS,
        "        if x.is_neg() or weight.is_neg() or (bias is not None and bias.is_neg()):\n"
        "            return None\n",
        "",
        "A weight that is a negative view is multiplied with the other sign.",
    ),
    Fault(
        "gradient_of_the_bias_not_summed",
        CALLS,
        "rows.sum(0) if needs_bias",
        "rows[0] if needs_bias",
        "The bias learns from one token.",
    ),
    Fault(
        "bias_taken_as_aligned",
        CALLS,
        "make(x, weight, bias, offset == 0)",
        "make(x, weight, bias, True)",
        "A vectorised load of an unaligned bias faults.",
    ),
    Fault(
        "own_forward_replaced",
        CONVERSION,
        'for each in model.modules() if "forward" not in vars(each)]',
        "for each in model.modules()]",
        "What a user assigned to a layer's forward is not called.",
    ),
    Fault(
        "hooks_of_layers_not_called",
        CONVERSION,
        "_has_hooks([*layers, *[each for each, _ in found.others]])",
        "_has_hooks([each for each, _ in found.others])",
        "A forward hook on a layer of an MLP is not called.",
    ),
    Fault(
        "hooks_of_the_activation_not_called",
        CONVERSION,
        "_has_hooks([*layers, *[each for each, _ in found.others]])",
        "_has_hooks(layers)",
        "A forward hook on the activation of an MLP is not called.",
    ),
    Fault(
        "replaced_layer_ignored",
        CONVERSION,
        " or _parts(self) != found.parts:",
        ":",
        "An activation that was replaced after the conversion is not computed.",
    ),
    Fault(
        "changed_activation_ignored",
        CONVERSION,
        "            if _parts(each) != parts:",
        "            if False:",
        "A module that was added to the activation after the conversion is not computed.",
    ),
    Fault(
        "layers_of_any_class",
        CONVERSION,
        "if not LINEAR.issuperset(map(type, layers)):",
        "if False:",
        "A layer that LoRA has wrapped computes without its adapters.",
    ),
    Fault(
        "global_hooks_not_called",
        CONVERSION,
        "    return bool(torch.nn.modules.module._has_any_global_hook())",
        "    return False",
        "A profiler's global hook does not see the layers of an MLP.",
    ),
    Fault(
        "classes_made_of_converted_ones",
        CONVERSION,
        "        if _is_derived(module):",
        "        if False:",
        "restore undoes a parametrization, too, and its tensors are lost.",
    ),
    Fault(
        "gate_and_up_by_address",
        MLP,
        "    gate_first = gate_first == (order == 1)\n",
        "",
        "up(x) goes through the activation in place of gate(x), if it lies first in memory.",
    ),
    Fault(
        "rows_that_are_not_contiguous",
        TENSORS,
        "    if x.ndim == 2 or not x.is_contiguous():\n",
        "    if x.ndim == 2:\n",
        "A transposed x (…, K) is multiplied as if its memory were that of a contiguous one.",
    ),
    Fault(
        "stored_halves_by_address",
        MLP,
        "        stored = stored[:: product.order]\n",
        "",
        "A compiled MLP has the gradient of an MLP with gate and up exchanged.",
    ),
    Fault(
        "slopes_by_address",
        MLP,
        "stored[:: product.order], halves[:: product.order]",
        "stored, halves",
        "A compiled MLP has the gradient of an MLP with gate and up exchanged.",
    ),
    Fault(
        "halves_of_one_weight_overlap",
        MLP,
        "distance = first.shape[0] // 2 * first.stride(0) * first.element_size()",
        "distance = first.shape[0] // 4 * first.stride(0) * first.element_size()",
        "The second half of a weight of gate and up begins within the first.",
    ),
    Fault(
        "mlp_of_negative_weights",
        MLP,
        "not _fit(x, w1) or any(each.is_neg() for each in (x, *w1))",
        "not _fit(x, w1)",
        "An MLP of a negative view is refused, where torch computes it.",
    ),
    Fault(
        "recognised_in_a_mode",
        RECOGNITION,
        "        if _modes() != self.modes:\n",
        "        if False:\n",
        "An MLP that computes without gradients has some after the conversion.",
    ),
    Fault(
        "autocast_not_seen",
        RECOGNITION,
        "_match(expression) if all(each == expression for each in others) else None",
        "_match(expression)",
        "An MLP that does something else in training or under autocast does not, when converted.",
    ),
    Fault(
        "effects_dropped",
        RECOGNITION,
        "    if given != [vars(each) for each in stand_ins.values()]:\n",
        "    if False:\n",
        "What an MLP counts is not counted any more.",
    ),
    Fault(
        "one_layer_as_gate_and_up",
        RECOGNITION,
        '("linear", second, "x") if first != second:',
        '("linear", second, "x"):',
        "An MLP with one layer as gate and as up is multiplied by something else.",
    ),
    Fault(
        "biases_dropped",
        RECOGNITION,
        "each.bias is None and each.weight.shape == shape",
        "each.weight.shape == shape",
        "An MLP with biases of gate and up computes without them.",
    ),
    Fault(
        "halves_of_any_mode",
        RECOGNITION,
        "if (chunks, dim) != (2, -1):",
        "if chunks != 2:",
        "An MLP that chunks tokens computes on chunks of columns.",
    ),
    Fault(
        "batches_as_one",
        MODE,
        "any(n != 1 and (step or n != of_a) for n, step, of_a in batches)",
        "any(n != 1 and n != of_a for n, step, of_a in batches)",
        "All matrices of a batch are multiplied by the first right-hand one.",
    ),
    Fault(
        "arguments_by_position",
        MODE,
        "    if len(named) < len(kwargs) or named != "
        "list(names[len(args) : len(args) + len(named)]):\n        return None\n",
        "",
        "torch.addmm(..., beta=2) is computed without beta.",
    ),
    Fault(
        "gradient_of_equal_matrices_to_one",
        MODE,
        "if torch.is_grad_enabled() and b.requires_grad and max(b.shape[:-2]) > 1:",
        "if False:",
        "The first matrix of an expanded tensor has the gradient of all.",
    ),
    Fault(
        "sums_saved_in_the_order_of_addresses",
        "cutedsl_gemm/two_layers.py",
        "for place in ctx.kept.places][::order]",
        "for place in ctx.kept.places]",
        "Gate and up are exchanged in the derivative if the gate lies behind.",
    ),
    Fault(
        "parts_at_any_distance",
        PAIRS,
        "not in_reach(distance) or distance % first.element_size()",
        "distance % first.element_size()",
        "Two weights a terabyte apart wrap around in the tensor map.",
    ),
    Fault(
        "traced_inside_torch_func",
        LINEAR,
        "    if transformed():  # of a traced graph",
        "    if False:  # of a traced graph",
        "The gradient of a compiled torch.func.grad is zero.",
    ),
    Fault(
        "strides_of_a_contiguous_x",
        CALLS,
        "_matrices(as_matrix(x.detach()), ",
        "_matrices(x.detach().reshape(m, k), ",
        "A layer of one output has no gradient: its call was made for other strides.",
    ),
    Fault(
        "shared_weight_counted_twice",
        "cutedsl_gemm/two_layers.py",
        "each if each is None else each.view_as(each) for each in tensors",
        "each for each in tensors",
        "With create_graph=True, each place of a weight that two layers share counts the other.",
    ),
    Fault(
        "undefined_gradient_followed",
        "cutedsl_gemm/fused_derivatives.py",
        "if all(grad is None for grad in grads):",
        "if False:",
        "A function whose backward gives None ends the backward pass of a layer with an error.",
    ),
    Fault(
        "matrix_of_one_row_always_a_vector",
        "cutedsl_gemm/operands.py",
        "whole and value.shape == shape",
        "False",
        "An epilogue that returns a matrix is refused where C has one row.",
    ),
)
