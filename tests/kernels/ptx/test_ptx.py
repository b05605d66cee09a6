"""A thread of a kernel, run on the CPU from its PTX, does what its instructions say."""

import operator
import struct
from functools import cache
from itertools import product

import pytest

from tests.kernels.ptx import events
from tests.kernels.ptx.arguments import Argument, pointer
from tests.kernels.ptx.machine import Launch, trace
from tests.kernels.ptx.reader import PtxError, read

WORDS = 0, 1, 2, 7, 31, 32, 33, 2**31 - 1, 2**31, 2**31 + 5, 2**32 - 7, 2**32 - 1


@cache
def kernel(body):
    """A kernel with its arguments in %r1, %r2 and %rd1, and shared memory at %r3."""
    (found,) = read(f"""
        .extern .shared .align 1024 .b8 memory[];
        .visible .entry test(.param .b32 a, .param .b32 b, .param .align 8 .b8 wide[16],
            .param .align 64 .b8 tma[128])
        .reqntid 64, 1, 1
        {{
            ld.param.b32 %r1, [a];
            ld.param.b32 %r2, [b];
            ld.param.b64 %rd1, [wide+8];
            mov.b32 %r3, memory;
            {body}
            ret;
        }}""")
    return found


def run(body, a=0, b=0, wide=0, thread=0, block=3, blocks=8):
    arguments = (
        Argument("a", struct.pack("<I", a)),
        Argument("b", struct.pack("<I", b)),
        Argument("wide", struct.pack("<QQ", 0, wide)),
        Argument("tma"),
    )
    return trace(
        Launch(kernel(body), arguments, cluster=2), block=block, blocks=blocks, thread=thread
    )


def values(body, *registers, **inputs):
    """What the instructions leave in registers: each is shown as the count of an mbarrier."""
    shown = "".join(f"mbarrier.init.shared.b64 [%r3], {each};" for each in registers)
    return tuple(event.count for event in run(body + shown, **inputs))


def signed(word, bits=32):
    return (word ^ 1 << bits - 1) - (1 << bits - 1)


def quotient(a, b):
    """Division as C and PTX have it: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "add.s32": operator.add,
    "sub.s32": operator.sub,
    "mul.lo.s32": operator.mul,
    "mul.hi.s32": lambda a, b: signed(a) * signed(b) >> 32,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.s32": lambda a, b: max(signed(a), signed(b)),
    "min.u32": min,
    "and.b32": operator.and_,
    "or.b32": operator.or_,
    "xor.b32": operator.xor,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
}
DIVISION = {
    "div.u32": operator.floordiv,
    "rem.u32": operator.mod,
    "div.s32": lambda a, b: quotient(signed(a), signed(b)),
    "rem.s32": lambda a, b: signed(a) - signed(b) * quotient(signed(a), signed(b)),
}
COMPARISON = {
    "eq.b32": operator.eq,
    "ne.s32": operator.ne,
    "lt.u32": operator.lt,
    "hs.u32": operator.ge,
    "lt.s32": lambda a, b: signed(a) < signed(b),
    "le.s32": lambda a, b: signed(a) <= signed(b),
    "gt.s32": lambda a, b: signed(a) > signed(b),
    "ge.s32": lambda a, b: signed(a) >= signed(b),
}


@pytest.mark.parametrize("opcode", [*BINARY, *DIVISION])
def test_integers_wrap_around_at_32_bits(opcode):
    function = {**BINARY, **DIVISION}[opcode]
    for a, b in product(WORDS, WORDS[opcode in DIVISION :]):
        found = values(f"{opcode} %r9, %r1, %r2;", "%r9", a=a, b=b)
        assert found == (function(a, b) % 2**32,), (opcode, a, b)


@pytest.mark.parametrize("opcode", COMPARISON)
def test_comparisons_and_predicates(opcode):
    body = f"""
        setp.{opcode} %p1, %r1, %r2;
        setp.eq.s32 %p2, %r1, 7;
        and.pred %p3, %p1, %p2;
        or.pred %p4, %p1, %p2;
        not.pred %p5, %p4;
        selp.b32 %r9, 5, 6, %p1;
        selp.b32 %r10, -1, 0, %p3;
        selp.b32 %r11, %r1, %r2, %p5;
        mov.b32 %r12, 0;
        @!%p1 bra past;
        mov.b32 %r12, 1;
    past:
    """
    for a, b in product(WORDS, WORDS):
        holds, seven = COMPARISON[opcode](a, b), a == 7
        expected = 5 if holds else 6, (holds and seven) * (2**32 - 1), b if holds or seven else a
        found = values(body, "%r9", "%r10", "%r11", "%r12", a=a, b=b)
        assert found == (*expected, holds), (opcode, a, b)


def test_negation_and_immediate_operands():
    body = """
        neg.s32 %r9, %r1;
        not.b32 %r10, %r1;
        abs.s32 %r11, %r1;
        mad.lo.s32 %r12, %r1, -3, -6;
        mul.hi.u32 %r13, %r1, -1431655765;
        and.b32 %r14, %r1, -64;
        add.s32 %r15, %r1, 0x10;
        shr.s32 %r16, %r1, 6;
    """
    for a in WORDS:
        s = signed(a)
        expected = -a, ~a, abs(s), a * -3 - 6, a * 2863311531 >> 32, a & -64, a + 16, s >> 6
        found = values(body, *(f"%r{n}" for n in range(9, 17)), a=a)
        assert found == tuple(value % 2**32 for value in expected), a


def test_a_funnel_shift_takes_its_bits_from_two_registers():
    for a, b, shift in product(WORDS, WORDS, (0, 8, 24, 31, 40)):
        found = values(f"shf.r.wrap.b32 %r9, %r1, %r2, {shift};", "%r9", a=a, b=b)
        assert found == ((b << 32 | a) >> shift % 32 & 2**32 - 1,), (a, b, shift)


def test_conversions_extend_and_truncate_as_their_types_say():
    body = """
        cvt.u64.u32 %rd9, %r1;
        cvt.s64.s32 %rd10, %r1;
        cvt.u32.u64 %r9, %rd1;
        cvt.u16.u32 %rs1, %r1;
        shl.b16 %rs2, %rs1, 3;
        mul.wide.s32 %rd11, %r1, %r2;
        mul.wide.u32 %rd12, %r1, %r2;
        add.s64 %rd13, %rd1, %rd10;
        shl.b64 %rd14, %rd1, 2;
        mov.b64 {%r10, %r11}, %rd1;
        mov.b64 %rd15, {%r1, %r2};
        cvt.s32.s16 %r12, %r1;
    """
    wides = [f"%rd{n}" for n in range(9, 16)]
    registers = *wides[:2], "%r9", "%rs1", "%rs2", *wides[2:6], "%r10", "%r11", wides[6], "%r12"
    for a, b in product(WORDS, WORDS):
        wide = a * 0x1_0000_0003 % 2**64
        expected = (
            *(a, signed(a) % 2**64, wide % 2**32, a % 2**16, a * 8 % 2**16),
            *(signed(a) * signed(b) % 2**64, a * b, (wide + signed(a)) % 2**64, wide * 4 % 2**64),
            *(wide % 2**32, wide >> 32, b << 32 | a, signed(a % 2**16, 16) % 2**32),
        )
        assert values(body, *registers, a=a, b=b, wide=wide) == expected, (a, b)


def test_a_thread_knows_its_place():
    body = """
        mov.u32 %r9, %tid.x;
        mov.u32 %r10, %ctaid.x;
        mov.u32 %r11, %nctaid.x;
        mov.u32 %r12, %cluster_ctarank;
        elect.sync %r13|%p1, -1;
        selp.b32 %r14, 1, 0, %p1;
        shfl.sync.idx.b32 %r15, %r10, 0, 31, -1;
        mov.u32 %r16, %tid.y;
        mov.u32 %r17, %ntid.y;
    """
    registers = [f"%r{n}" for n in (9, 10, 11, 12, 14, 15, 16, 17)]
    assert values(body, *registers, thread=32) == (32, 3, 8, 1, 1, 3, 0, 1)
    assert values(body, *registers, thread=33) == (33, 3, 8, 1, 0, 3, 0, 1)


def test_labels_and_registers_in_braces_belong_to_the_braces():
    wait = """
    {
    .reg .pred       P1;
    LAB_WAIT:
    mbarrier.try_wait.parity.shared.b64 P1, [%r4], 1, 10000000;
    @P1 bra.uni DONE;
    bra.uni     LAB_WAIT;
    DONE:
    }
    """
    body = f"add.s32 %r4, %r3, 8; {wait} add.s32 %r4, %r4, 8; {wait}"
    assert run(body) == [events.MbarrierTryWait(8, 1), events.MbarrierTryWait(16, 1)]


def test_an_arrival_at_another_block_has_its_rank():
    body = """
        add.s32 %r9, %r3, 64;
        mapa.shared::cluster.u32 %r10, %r9, 5;
        mbarrier.arrive.shared::cluster.b64 _, [%r10], 1;
        mbarrier.arrive.shared.b64 %rd9, [%r3+64], 2;
    """
    assert run(body) == [events.MbarrierArrive(64, 5, 1), events.MbarrierArrive(64, None, 2)]


def test_tma_loads_have_signed_coordinates():
    body = """
        mov.b64 %rd9, tma;
        cvta.param.u64 %rd10, %rd9;
        mov.b64 %rd11, 0;
        cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint\
 [%r3+1024], [%rd10, {%r1, %r2}], [%r3+8], %rd11;
    """
    (load,) = run(body, a=2**32 - 64, b=3)
    assert load == events.TmaLoad("tma", (-64, 3), 1024, 8, None, 0)


def test_cp_async_and_ldmatrix_have_their_addresses_and_bytes():
    body = """
        add.s64 %rd9, %rd1, 32;
        cp.async.cg.shared.global [%r3+128], [%rd9+16], 16, %r1;
        cp.async.ca.shared.global [%r3+256], [%rd1], 4;
        cp.async.commit_group;
        cp.async.wait_group 1;
        ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r4, %r5}, [%r3+512];
    """
    assert run(body, a=6, wide=pointer(2)) == [
        events.CpAsync(128, "wide", 48, 16, 6),
        events.CpAsync(256, "wide", 0, 4, 4),
        events.CpAsyncCommitGroup(),
        events.CpAsyncWaitGroup(1),
        events.LdMatrix(512, 2, True),
    ]


def test_a_stored_value_names_the_accumulator_or_the_address_that_it_comes_from():
    body = """
        mov.b64 %rd9, 4611686293305360448;  // a descriptor of shared memory's first KiB
        mov.b32 %r9, 1;
        setp.ne.b32 %p1, %r9, 0;
        mov.pred %p2, 0;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r10, %r11, %r12, %r13}, %rd9, %rd9,\
 %p2, 1, 1, 0, 1;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r10, %r11, %r12, %r13}, %rd9, %rd9,\
 %p1, 1, 1, 0, 0;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r14, %r15, %r16, %r17}, %rd9, %rd9,\
 %p2, 1, 1, 0, 0;
        mov.b32 %r18, %r15;
        cvt.rn.bf16x2.f32 %r19, %r11, %r10;
        cvt.rn.bf16x2.f32 %r20, %r18, %r9;
        stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r3+64], {%r19, %r20};
        ld.shared.v2.b32 {%r21, %r22}, [%r3+128];
        add.f32 %r23, %r21, %r21;
        ex2.approx.ftz.f32 %r24, %r10;
        fma.rn.f32 %r24, %r24, 0f3F000000, %r23;
        setp.gt.f32 %p3, %r24, %r11;
        selp.f32 %r24, %r24, 0f00000000, %p3;
        st.global.v4.b32 [%rd1+8], {%r22, %r23, %r24, %r9};
    """
    found = run(body, wide=pointer(2))
    wgmmas = [event for event in found if isinstance(event, events.Wgmma)]
    assert [(each.scale_d, each.accumulator) for each in wgmmas] == [
        *((False, 0), (True, 0), (False, 1))
    ]
    assert {(each.shape, each.a, each.b, each.a_descriptor.major) for each in wgmmas} == {
        ((64, 8, 16), 0, 0, "K")
    }
    assert [each.b_descriptor.major for each in wgmmas] == ["MN", "K", "K"]
    assert found[3:] == [
        events.StMatrix(64, 2, True, ((0, 0), (0, 1), None, (1, 1))),
        events.LoadShared(128, 8),
        events.StoreGlobal("wide", 8, 16, (132, 128, frozenset({(0, 0), (0, 1), 128}), None)),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add.s32 %r9, %r1, 017;", "'017' is not a register"),
        ("brx.idx %r1;", r"line 11: brx\.idx %r1: brx\.idx is not known here"),
        ("prmt.b32 %r9, %r1, %r2, %r1;", r"line 11: prmt"),
        ("add.s32 %r9, %r8, 1;", "line 11: add.s32 %r9, %r8, 1: a register has no value"),
        ("div.s32 %r9, %r1, %r2;", "division"),
        ("loop: bra loop;", "line 11: bra loop: .* does not end"),
        ("bra nowhere;", "there is no such label"),
        ("ld.shared.b32 %r9, [%r3]; ld.shared.b32 %r9, [%r9];", "needs the value of data"),
        (
            "ld.shared.b32 %r9, [%r3]; add.s32 %r9, %r9, 1; setp.lt.s32 %p1, %r9, 3; @%p1 ret;",
            r"line 11: @%p1 ret: it decides by data",
        ),
        (
            "setp.ne.b32 %p1, 1, 0; mov.b64 %rd9, 4611686293305360448;"
            + "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r4, %r5, %r6, %r7}, %rd9,"
            "%rd9, 0, 1, 1, 0, 0; "
            + "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r5, %r4, %r6, %r7}, %rd9,"
            "%rd9, %p1, 1, 1, 0, 0;",
            "adds to registers that hold neither zeros nor one accumulator, in order",
        ),
        ("ld.shared.b32 %r9, [%r3+-4];", "address -4 is outside dynamic shared memory"),
        ("ld.shared.b32 %r9, [64];", "address -960 is outside dynamic shared memory"),
        ("ld.global.b32 %r9, [%rd1];", "global address 0x0 is in no tensor"),
        ("ld.param.b32 %r9, [wide+16];", "has no 4 bytes at 16"),
    ],
)
def test_what_cannot_be_run_is_an_error_that_names_the_line(body, message):
    with pytest.raises(PtxError, match=message):
        run(body)


@pytest.mark.parametrize("threads", [".reqntid 64, 2, 1", ".reqntid 64, 1, 2", ".maxntid 64, 1, 1"])
def test_the_threads_of_a_block_lie_along_x(threads):
    with pytest.raises(PtxError, match="kernel test: it must state its threads, along x alone"):
        read(f".visible .entry test() {threads} {{ ret; }}")


def test_arguments_have_the_sizes_of_the_parameters():
    with pytest.raises(PtxError, match=r"\[4, 4\] bytes.* must have \[4, 4, 16, 128\]"):
        Launch(kernel(""), (Argument("a", bytes(4)), Argument("b", bytes(4))))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"thread": 64}, "thread is 64; it must be 0 to 63"),
        ({"block": 8}, "block is 8; it must be 0 to 7"),
        ({"blocks": 7}, "blocks is 7; it must be a multiple of the cluster, 2"),
    ],
)
def test_a_launch_has_the_block_and_the_thread(place, message):
    with pytest.raises(PtxError, match=message):
        run("", **place)
