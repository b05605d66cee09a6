"""One call of every public operation of `layouts`, as the expression language spells it."""

from typing import Any

from layouts.notation.expression import operations
from layouts.notation.reader import Reader

L, T = "(8,64):(64,1)", "S<3,3,3> o 0 o (8,64):(64,1)"
ROWS, X4 = "(64,64):(64,1)", "Access('ldmatrix.x4', (16,2):(1,512))"
MMA_ATOM, COPY_ATOM = "mma('m16n8k16','bf16')", "make_copy_atom(ldmatrix(4), 16)"
TILED_MMA = f"make_tiled_mma({MMA_ATOM}, (2,2,1))"
VECTOR = "make_copy_atom(16, 16)"
TILED_COPY = f"make_tiled_copy_tv({VECTOR}, (16,8):(8,1), (1,8):(0,1))"
BLOCK, COPIES = "(2,2):(1,2)", "(2,3):(1,2)"
BASES = "(('lane',((0,1),(1,0))),)"

#: Name of an operation or of a value → its arguments.
CALLS = {
    "Access": "'ldmatrix.x4', (16,2):(1,512)",
    "ArithTuple": "(((0,),4), ((1,),2))",
    "Bijective": L,
    "ComplementLaws": f"{L}, 1024",
    "ComposedLayout": "Swizzle(3,3,3), 0, (8,64):(64,1), 16",
    "CompositionLaw": f"{L}, 8:2",
    "ConflictFree": "8:64, 'ldmatrix.x1'",
    "DivideLaw": f"{L}, (4,16)",
    "E": "0, 1",
    "Equivalent": "(4,8):(1,4), 32:1",
    "F2": "5",
    "Injective": L,
    "Instruction": "'mine', 16, 32",
    "Layout": "(8,64), (64,1)",
    "LeftInverseLaw": L,
    "LinearLayout": f"{BASES}, ('m','n')",
    "NamedLayout": f"{L}, ('m','k')",
    "NoSwizzle": f"{ROWS}, ({X4},), 16, 16",
    "ProductLaw": f"{BLOCK}, 4",
    "RightInverseLaw": L,
    "Swizzle": "3, 3, 3",
    "SwizzleAlignment": "Swizzle(3,3,3)",
    "SwizzleInvolution": "Swizzle(3,3,3)",
    "WgmmaDescriptor": "'K', 128, 16, 1024, 16",
    "append": f"{L}, 2:512",
    "banks": f"{ROWS}, 'ldmatrix.x4', (16,2):(1,512)",
    "blocked_product": f"{BLOCK}, {COPIES}",
    "coalesce": "(2,(1,6)):(1,(6,2))",
    "compare": f"{L}, (8,64):(72,1)",
    "compatible": "(4,6), (4,(2,3))",
    "complement": "4:2, 24",
    "composition": f"{L}, 8:2",
    "congruent": "(4,6), (2,3)",
    "cosize": L,
    "crd2crd": "(1,5), (4,8), (2,16)",
    "crd2idx": "(1,5), (4,8), (8,1)",
    "depth": "(4,(2,3))",
    "dice": "(_,1), (4,8)",
    "downcast": f"{L}, 2",
    "elem_less": "(1,2), (4,8)",
    "equivalent": "(4,8):(1,4), 32:1",
    "explain": f"composition, {L}, 8:2",
    "filter": "(4,8):(0,1)",
    "flat_divide": f"{L}, (4,16)",
    "flat_product": f"{BLOCK}, {COPIES}",
    "flatten": "((2,4),8):((1,2),8)",
    "from_bits": "(1,2,5), (4,2)",
    "from_linear_layout": f"{BASES}, ('m','n')",
    "group_modes": "(2,4,8):(1,2,8), 0, 2",
    "idx2crd": "13, (4,8)",
    "instruction": "'ldmatrix.x4'",
    "ldmatrix": "4",
    "left_inverse": L,
    "local_partition": "(8,16):(16,1), (4,8):(8,1), 9",
    "local_tile": "(128,64):(64,1), (32,16), (1,2)",
    "logical_divide": f"{L}, (4,16)",
    "logical_product": f"{BLOCK}, {COPIES}",
    "make_copy_atom": "ldmatrix(4), 16",
    "make_counting_tensor": L,
    "make_fragment_like": L,
    "make_identity_layout": "(4,8)",
    "make_identity_tensor": "(4,8)",
    "make_layout": "4:2, 3:1",
    "make_layout_like": L,
    "make_layout_tv": "(16,8):(8,1), (1,8):(0,1)",
    "make_ordered_layout": "(4,8), (1,0)",
    "make_rmem_tensor": "(4,2), 'float32'",
    "make_tiled_copy": f"{VECTOR}, (32,8):(8,1), (32,8)",
    "make_tiled_copy_A": f"{COPY_ATOM}, {TILED_MMA}",
    "make_tiled_copy_B": f"make_copy_atom(ldmatrix(2), 16), {TILED_MMA}",
    "make_tiled_copy_C": f"make_copy_atom(4, 32), {TILED_MMA}",
    "make_tiled_copy_C_atom": f"make_copy_atom(4, 32), {TILED_MMA}",
    "make_tiled_copy_D": f"{VECTOR}, {TILED_COPY}",
    "make_tiled_copy_S": f"{VECTOR}, {TILED_COPY}",
    "make_tiled_copy_tv": f"{VECTOR}, (16,8):(8,1), (1,8):(0,1)",
    "make_tiled_mma": f"{MMA_ATOM}, (2,2,1)",
    "max_common_layout": f"{L}, {L}",
    "max_common_vector": f"{L}, {L}",
    "mfma": "'32x32x8', 'f16'",
    "mma": "'m16n8k16', 'bf16'",
    "named": f"{L}, 'm', 'k'",
    "nullspace": "(4,8):(0,1)",
    "padding_for": f"{ROWS}, ({X4},)",
    "postcondition": f"composition, {L}, 8:2",
    "prepend": f"{L}, 2:512",
    "product": "(4,(2,3))",
    "prove": f"Injective({L})",
    "raked_product": f"{BLOCK}, {COPIES}",
    "rank": "(4,(2,3))",
    "recast": f"{L}, 16, 8",
    "replace": f"{L}, 1, 32:1",
    "right_inverse": L,
    "sectors": "32:1, 4, 32",
    "select": "(2,4,8):(1,2,8), (0,2)",
    "size": "(4,8)",
    "slice_": f"(_,1), {L}",
    "slice_and_offset": f"(_,1), {L}",
    "staging_report": "16",
    "stmatrix": "4",
    "swizzle_for": f"{ROWS}, ({X4}, {X4}), 16",
    "table": L,
    "table_tv": "((2,2),2):((1,4),2), (4,2)",
    "tcgen05_accumulator": "128, 64",
    "tcgen05_ld": "'32x32b', 2",
    "tcgen05_st": "'32x32b', 2",
    "tile_to_shape": f"{BLOCK}, (4,8)",
    "tiled_divide": f"{L}, (4,16)",
    "tiled_product": f"{BLOCK}, {COPIES}",
    "to_bits": T,
    "to_linear_layout": "(2,2):(2,1), ('lane','warp'), (('m',2),('n',2))",
    "unflatten": "(1,2,3), (4,(2,3))",
    "universal_fma": "",
    "upcast": f"{L}, 2",
    "volta_mma": "'row', 'col', 'f32'",
    "wavefronts": "32:16, 'ldmatrix.x4', 8",
    "weakly_congruent": "4, (2,3)",
    "wgmma": "64, 'bf16'",
    "wgmma_accumulator": "64",
    "wgmma_descriptor": "ComposedLayout(Swizzle(3,3,3), 0, (64,64):(64,1), 16), 'K'",
    "wgmma_operand": "16",
    "wgmma_smem_atom": "'K', 128, 16",
    "zipped_divide": f"{L}, (4,16)",
    "zipped_product": f"{BLOCK}, {COPIES}",
}

#: Values that operations return: nobody needs to make one by hand.
RESULTS = (
    *("BankReport", "CopyAtom", "Counterexample", "MatrixAtom", "MmaAtom", "Padding", "Proof"),
    *("Sectors", "StagingReport", "SwizzleChoice", "Table", "Tensor", "ThrCopy", "ThrMma", "Tile"),
    *("TiledCopy", "TiledMma", "TmemAtom", "Wavefronts"),
)

#: What acts on the data of tensors, which no expression writes.
ON_DATA = ("copy", "gemm", "make_tensor")


def arguments(name: str) -> tuple[Any, ...]:
    """The arguments of the call of `name`, as values."""
    names = {**operations(), "arguments": lambda *given: given}
    values: tuple[Any, ...] = Reader(f"arguments({CALLS[name]})", names, "").read()
    return values
