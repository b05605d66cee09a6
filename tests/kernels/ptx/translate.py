"""The translator: a kernel of PTX as the source of a Python function that runs one thread.

A register is a local variable: an unsigned integer of its width, a predicate a bool. What is
multiplied, added and stored is Data (machine.py), on which every operation gives Data again. An
instruction that the tables below do not have is an error that names it.

The function has one `if` for each label, in the order of the text:

    while True:
        if at <= 0: …                        # the instructions before the first label
        if at <= 1: …                        # those behind it; a branch to it is
            if _p3: at = 1; continue
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tests.kernels.ptx.reader import Instruction, Kernel, Label, PtxError

# Windows of addresses: the parameters, and shared memory seen through a generic address.
PARAMETERS, PARAMETER_BITS = 1 << 60, 12
GENERIC = 1 << 56
SHARED = 1024  # where dynamic shared memory starts: the system takes the first KiB on sm_90

SPECIAL = {
    "%tid.x": "tid",
    "%tid.y": "0",  # the reader takes blocks in a line along x alone
    "%tid.z": "0",
    "%laneid": "lane",
    "%ntid.x": "threads",
    "%ntid.y": "1",
    "%ntid.z": "1",
    "%ctaid.x": "ctaid",
    "%nctaid.x": "nctaid",
    "%cluster_ctarank": "ctarank",
    "%globaltimer": "0",  # a wait passes at once
}

# Results of integers, whose operands are u unsigned, t as the type says, n the count of a shift.
INTEGER = {
    "add": "{1:u} + {2:u}",
    "sub": "{1:u} - {2:u}",
    "neg": "-{1:u}",
    "mul.lo": "{1:u} * {2:u}",
    "mad.lo": "{1:u} * {2:u} + {3:u}",
    "mul.hi": "{1:t} * {2:t} >> {bits}",
    "div": "quotient({1:t}, {2:t})",
    "rem": "remainder({1:t}, {2:t})",
    "min": "min({1:t}, {2:t})",
    "max": "max({1:t}, {2:t})",
    "abs": "abs({1:t})",
    "and": "{1:u} & {2:u}",
    "or": "{1:u} | {2:u}",
    "xor": "{1:u} ^ {2:u}",
    "not": "~{1:u}",
    "shl": "{1:u} << {2:n}",
    "shr": "{1:t} >> {2:n}",
}
COMPARISON = {
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"lo": "<", "ls": "<=", "hi": ">", "hs": ">="},
}
PREDICATE = {
    "mov": "{1:p}",
    "not": "{1:p} ^ True",
    "and": "{1:p} & {2:p}",
    "or": "{1:p} | {2:p}",
    "xor": "{1:p} ^ {2:p}",
}

INT, FLOAT = r"\.[bsu](?:16|32|64)", r"\.(?:f16|bf16|f32|f64)(?:x2)?"
ARITHMETIC = (
    "(?:abs|add|copysign|cvt|div|ex2|fma|lg2|max|min|mov|mul|neg|rcp|rsqrt|selp|setp|sqrt|sub|tanh)"
    rf"[.\w]*{FLOAT}"
)
PASSES = (1 << 31) - 1  # an epoch later than any that a wait asks for
VALUES = "{1:u}, {2:u}, {3:u}", "{1:u}, {2:u}", "{1:u}"  # of three, two or one
VECTOR = r"(?:\.v(?P<vector>[24]))?\.[bu](?P<width>8|16|32|64)"
BYTES = "{vector} * {width} // 8"
TMA_LOAD = (
    r"cp\.async\.bulk\.tensor\.\dd\.shared::(?:cta|cluster)\.global\.tile"
    r"\.mbarrier::complete_tx::bytes{}\.L2::cache_hint"
)
CP_ASYNC = r"cp\.async\.c[ag]\.shared(?:::cta)?\.global"
CP_ASYNC_ADDRESSES = "{0:shared}, *tensor({1:address})"
SHAPE = r"m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)"
MMA = rf"mma\.sync\.aligned\.{SHAPE}\.row\.col\.f32\.(?P<type>bf16|f16)\.(?P=type)\.f32"
VOLTA_MMA = r"mma\.sync\.aligned\.m(?P<m>8)n(?P<n>8)k(?P<k>4)\.col\.row\.f32\.f16\.f16\.f32"
WGMMA = rf"wgmma\.mma_async\.sync\.aligned\.{SHAPE}\.f32\.(?P<type>bf16|f16)\.(?P=type)"

# Opcode → statements. Of rows with one opcode, the first whose operands are all there.
ROWS: tuple[tuple[str, str], ...] = (
    *(
        (name.replace(".", r"\.") + INT, f"{{0}} = ({result}) & {{mask}}")
        for name, result in INTEGER.items()
    ),
    (r"mov" + INT, "{0} = {1:u}"),  # what is known of data moves with it
    (r"selp" + INT, "{0} = {1:u} if {3:p} else {2:u}"),
    (r"mul\.wide\.[su](?:16|32)", "{0} = {1:t} * {2:t} & {wide}"),
    (r"shf\.r\.wrap\.b32", "{0} = funnel_shift({1:u}, {2:u}, {3:u} & 31)"),
    (r"cvt\.[su](?P<to>16|32|64)\.[su](?:16|32|64)", "{0} = ({1:c}) & (1 << {to}) - 1"),
    *(
        (rf"setp\.{name}" + INT, f"{{0}} = {{1:t}} {sign} {{2:t}}")
        for name, sign in COMPARISON.items()
    ),
    *((rf"{name}\.pred", f"{{0}} = {result}") for name, result in PREDICATE.items()),
    # Data
    (r"cvt\.rn\.b?f16x2\.f32", "{0} = Packed({2}, {1})"),
    *((ARITHMETIC, f"{{0}} = computed({values})") for values in VALUES),
    # Addresses, and what a thread knows of its warp
    (r"cvta\.param\.u64|cvta\.to\.global\.u64", "{0} = {1:u}"),
    (r"cvta\.shared\.u64", f"{{0}} = {{1:u}} + {GENERIC}"),
    (r"cvta\.to\.shared::c(?:ta|luster)\.u64", f"{{0}} = {{1:u}} - {GENERIC}"),
    (r"mapa\.shared::cluster\.u32", "{0} = of_rank({1:u}, {2:u})"),
    (r"shfl\.sync\.idx\.b32", "{0} = shuffled({1:u}, {2:u})"),
    (r"elect\.sync", "{0:first} = 0; {0:second} = lane == 0"),
    # Memory
    (rf"ld\.param{VECTOR}", "{0:list} = parameter({1:address}, {width} // 8, {vector})"),
    (
        rf"ld\.global{VECTOR}",
        "{0:list} = load_global({1:address}, {width} // 8, {vector})",
    ),
    (
        rf"st\.global{VECTOR}",
        f"emit(StoreGlobal(*tensor({{0:address}}), {BYTES}, sources({{1:list}})))",
    ),
    (
        rf"ld\.shared(?:::cta)?{VECTOR}",
        "{0:list} = load_shared({1:address}, {width} // 8, {vector})",
    ),
    (rf"st\.shared(?:::cta)?{VECTOR}", f"emit(StoreShared({{0:shared}}, {BYTES}))"),
    (
        r"stmatrix\.sync\.aligned\.m8n8\.x(?P<matrices>[124])(?P<transposed>\.trans)?\.shared"
        r"(?:::cta)?\.b16",
        "emit(StMatrix({0:shared}, {matrices}, {transposed}, sources({1:list})))",
    ),
    (
        r"ldmatrix\.sync\.aligned\.m8n8\.x(?P<matrices>[124])(?P<transposed>\.trans)?\.shared"
        r"(?:::cta)?\.b16",
        "{0:list} = load_matrix({1:address}, {matrices}, {transposed})",
    ),
    (CP_ASYNC, f"emit(CpAsync({CP_ASYNC_ADDRESSES}, {{2:i}}, {{3:i}}))"),
    (CP_ASYNC, f"emit(CpAsync({CP_ASYNC_ADDRESSES}, {{2:i}}, {{2:i}}))"),
    (r"cp\.async\.commit_group", "emit(CpAsyncCommitGroup())"),
    (r"cp\.async\.wait_group", "emit(CpAsyncWaitGroup({0:i}))"),
    # TMA
    (r"prefetch\.tensormap", "emit(PrefetchTensormap(descriptor({0:address})))"),
    (
        TMA_LOAD.format(r"\.multicast::cluster"),
        "emit(TmaLoad({1:tensor}, {0:shared}, {2:shared}, {3:i}, {4:i}))",
    ),
    (TMA_LOAD.format(""), "emit(TmaLoad({1:tensor}, {0:shared}, {2:shared}, None, {3:i}))"),
    (
        r"cp\.async\.bulk\.tensor\.\dd\.global\.shared::cta\.tile\.bulk_group\.L2::cache_hint",
        "emit(TmaStore({0:tensor}, {1:shared}, {2:i}))",
    ),
    (r"cp\.async\.bulk\.commit_group", "emit(BulkCommitGroup())"),
    (
        r"cp\.async\.bulk\.wait_group(?P<read>\.read)?",
        "emit(BulkWaitGroup({0:i}, {read}))",
    ),
    # Matrix instructions
    (MMA, "emit(Mma(({m}, {n}, {k}))); {0:list} = (DATA,) * ({m} * {n} // 32)"),
    (VOLTA_MMA, "emit(Mma(({m}, {n}, {k}))); {0:list} = (DATA,) * ({m} * {n} // 8)"),
    (
        WGMMA,
        "{0:list} = wgmma(({m}, {n}, {k}), {1:u}, {6:u}, {2:u}, {7:u}, ({4:u}, {5:u}), "
        "({0:list}) if {3:p} else None)",
    ),
    (r"wgmma\.fence\.sync\.aligned", "emit(WgmmaFence())"),
    (r"wgmma\.commit_group\.sync\.aligned", "emit(WgmmaCommitGroup())"),
    (r"wgmma\.wait_group\.sync\.aligned", "emit(WgmmaWaitGroup({0:i}))"),
    # Synchronization
    (r"mbarrier\.init\.shared(?:::cta)?\.b64", "emit(MbarrierInit({0:shared}, {1:i}))"),
    (
        r"mbarrier\.try_wait\.parity\.shared(?:::cta)?\.b64",
        "emit(MbarrierTryWait({1:shared}, {2:i})); {0} = True",
    ),
    (
        r"mbarrier\.test_wait\.parity\.acquire\.cta\.shared(?:::cta)?\.b64",
        "{0} = test_wait({1:shared}, {2:i})",
    ),
    (
        r"mbarrier\.arrive\.expect_tx\.shared(?:::cta)?\.b64",
        "emit(MbarrierArriveExpectTx({1:shared}, {2:i})); {0} = DATA",
    ),
    (
        r"mbarrier\.arrive\.shared(?:::cta|::cluster)?\.b64",
        "emit(MbarrierArrive(*address_and_rank({1:address}), {2:i})); {0} = DATA",
    ),
    (r"fence\.mbarrier_init\.release\.cluster", "emit(FenceMbarrierInit())"),
    (r"fence\.proxy\.async\.shared::cta", "emit(FenceProxyAsync())"),
    (r"fence\.proxy\.async", "emit(FenceProxyAsync(shared=False))"),
    (
        r"ld\.acquire\.sys\.global\.b32",
        f"emit(AcquireFlag(*tensor({{1:address}}))); {{0}} = {PASSES}",
    ),
    (
        r"atom\.global\.sys\.release\.add\.u32",
        "emit(AddToFlag(*tensor({1:address}), {2:i})); {0} = DATA",
    ),
    (r"trap", "emit(Trap())"),
    (r"bar\.sync", "emit(BarSync({0:i}, {1:i}))"),
    (r"bar\.sync", "emit(BarSync({0:i}, threads))"),
    (r"bar\.arrive", "emit(BarArrive({0:i}, {1:i}))"),
    (r"barrier\.cluster\.arrive\.relaxed", "emit(ClusterArrive())"),
    (r"barrier\.cluster\.wait", "emit(ClusterWait())"),
    (r"setmaxnreg\.(?P<action>dec|inc)\.sync\.aligned\.u32", "emit(SetMaxNReg({action!r}, {0:i}))"),
    (r"griddepcontrol\.wait", "emit(GridDependencyWait())"),
    (r"griddepcontrol\.launch_dependents", "emit(LaunchDependents())"),
)

FLAGS = ("read", "transposed")  # groups of a pattern that are there or not

LITERAL = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|0[fFdD][0-9a-fA-F]+|0|[1-9]\d*)U?")
TYPE = re.compile(r"\.([bsuf])(\d+)(?=\.|$)")

PROLOGUE = """\
def thread(run):
    emit, parameter, tensor = run.events.append, run.parameter, run.tensor
    descriptor, wgmma, shuffled = run.descriptor, run.wgmma, run.shuffled
    test_wait = run.test_wait
    load_global, load_shared, load_matrix = run.load_global, run.load_shared, run.load_matrix
    tid, threads, lane = run.thread, run.threads, run.thread % 32
    ctaid, nctaid, ctarank = run.block, run.blocks, run.rank
    at, turns = 0, run.turns
    while True:
"""


class Operand:
    """An operand's text, which formats as a Python expression of the kind that a row asks for."""

    def __init__(self, text: str, bits: int, signed: bool) -> None:
        self.text, self.bits, self.signed = text, bits, signed
        self.half = 1 << bits - 1

    def __format__(self, kind: str) -> str:
        match kind:
            case "u" | "t":
                return self.value(self.text, kind == "t" and self.signed)
            case "c":  # of cvt, whose register may be wider than the type
                low = f"({self:u} & {(1 << self.bits) - 1})"
                return f"({low} ^ {self.half}) - {self.half}" if self.signed else low
            case "p":  # a predicate
                return str(self.text != "0") if LITERAL.fullmatch(self.text) else f"{self}"
            case "i":  # a value that an event holds
                return f"index({self.value(self.text, False)})"
            case "n":
                return f"min({self.value(self.text, False)}, {self.bits})"
            case "first" | "second":
                return register(self.text.split("|")[kind == "second"])
            case "list":
                return "".join(f"{register(each)}, " for each in inside(self.text, "{}"))
            case "address":
                (address,) = inside(self.text, "[]")
                return self.address(address)
            case "shared":
                return f"shared({self:address})"
            case "tensor":  # of TMA: [descriptor, {coordinates}]
                address, coordinates = inside(self.text, "[]")
                at = (f"index({self.value(each, True)})" for each in inside(coordinates, "{}"))
                return f"descriptor({self.address(address)}), ({', '.join(at)},)"
        return register(self.text)

    def value(self, text: str, signed: bool) -> str:
        """An integer register or literal, of the operand's bits."""
        half, size = self.half, 2 * self.half
        if literal := LITERAL.fullmatch(text):
            sign, digits = literal.groups()
            base = 16 if digits[1:2] in "xXfFdD" and len(digits) > 1 else 10
            value = int(sign + digits[2 if base == 16 else 0 :], base) % size
            return str(value - size if signed and value >= half else value)
        return f"(({register(text)} ^ {half}) - {half})" if signed else register(text)

    def address(self, text: str) -> str:
        """`register + offset`, or a literal."""
        base, _, offset = text.partition("+")
        value = base if base.isdigit() else register(base)
        return f"{value} + {int(offset)}" if offset else value


def register(text: str) -> str:
    """The Python name of a register."""
    if text in SPECIAL:
        return SPECIAL[text]
    if not re.fullmatch(r"%?[A-Za-z_]\w*", text):
        raise PtxError(f"{text!r} is not a register")
    return "_" + text.removeprefix("%")


def inside(text: str, brackets: str) -> list[str]:
    """The parts of `{a, b}` or `[a, b]`; of a text without brackets, the text itself."""
    if text[0] == brackets[0]:
        text = text[1:-1]
    return [part.strip() for part in re.findall(r"(?:[^,{]|\{[^}]*\})+", text)]


def translate(kernel: Kernel) -> tuple[str, list[Instruction | None]]:
    """The source of `thread(run)`, and the instruction from which each of its lines is made."""
    labels = {each.name: n for n, each in enumerate(_labels(kernel), 1)}
    symbols = dict.fromkeys(kernel.shared, SHARED)
    for n, parameter in enumerate(kernel.parameters):
        symbols[parameter.name] = PARAMETERS + (n << PARAMETER_BITS)
    source: list[str] = PROLOGUE.splitlines()
    made_from: list[Instruction | None] = [None] * len(source)

    def add(text: str, instruction: Instruction | None = None) -> None:
        source.append(text)
        made_from.append(instruction)

    add("        if at <= 0:")
    add("            pass")
    at = 0
    for each in kernel.body:
        if isinstance(each, Label):
            at += 1
            add(f"        if at <= {at}:")
            add("            pass")
            continue
        try:
            text = _statements(each, at, labels, symbols)
        except PtxError as error:
            raise PtxError(f"{kernel.name}, line {each.line}: {each}: {error}") from None
        if each.guard:
            guard = register(each.guard.removeprefix("!"))
            text = f"if {'not ' * each.guard.startswith('!')}{guard}: {text}"
        add(f"            {text}", each)
    return "\n".join(source), made_from


def _labels(kernel: Kernel) -> Iterator[Label]:
    return (each for each in kernel.body if isinstance(each, Label))


def _statements(
    instruction: Instruction, at: int, labels: dict[str, int], symbols: dict[str, int]
) -> str:
    """An instruction as Python, in the part of the kernel that follows label number `at`."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "ret":
        return "return"
    if opcode in ("bra", "bra.uni"):
        if (target := labels.get(operands[0])) is None:
            raise PtxError("there is no such label")
        turn = "turns -= 1; turns or run.endless(); " if target <= at else ""
        return f"{turn}at = {target}; continue"
    operands = tuple(
        re.sub(r"[\w$]+", lambda name: str(symbols.get(name[0], name[0])), each)
        for each in operands
    )
    if opcode.startswith("mov.b") and "{" in "".join(operands):
        return _unpack_or_pack(opcode, operands)
    types = TYPE.findall(opcode)
    kind, bits = types[-1] if types else ("u", "32")
    filled = [Operand(each, int(bits), kind == "s") for each in operands]
    for template, needed, groups in rows(opcode):
        if len(operands) >= needed:
            sizes = {"bits": bits, "mask": (1 << int(bits)) - 1, "wide": (1 << 2 * int(bits)) - 1}
            return template.format(*filled, **sizes, **groups)
    raise PtxError(f"{opcode} is not known here, or not with {len(operands)} operands")


@cache
def rows(opcode: str) -> list[tuple[str, int, dict[str, object]]]:
    """The rows of an opcode: statements, how many operands they name, what the pattern found."""
    found = []
    for pattern, template in ROWS:
        if match := re.fullmatch(pattern, opcode):
            named = map(int, re.findall(r"\{(\d)", template))
            groups = {
                name: bool(part) if name in FLAGS else part or "1"
                for name, part in match.groupdict().items()
            }
            found.append((template, max(named, default=-1) + 1, groups))
    return found


def _unpack_or_pack(opcode: str, operands: tuple[str, ...]) -> str:
    """mov of a register into the parts of a vector, or back; the first part has the low bits."""
    target, source = operands
    parts = inside(target if target[0] == "{" else source, "{}")
    bits = int(TYPE.findall(opcode)[-1][1]) // len(parts)
    if target[0] == "{":
        return "; ".join(
            f"{register(part)} = {register(source)} >> {n * bits} & {(1 << bits) - 1}"
            for n, part in enumerate(parts)
        )
    values = [f"{Operand(part, bits, False):u}" for part in parts]
    if bits == 16 and len(parts) == 2:
        return f"{register(target)} = packed({', '.join(values)})"
    shifted = (f"{value} << {n * bits}" for n, value in enumerate(values))
    return f"{register(target)} = {' | '.join(shifted)}"
