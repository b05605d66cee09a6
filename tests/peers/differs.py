"""The cases of the peers' suites that differ here, by the reason."""

DIFFERS: dict[str, dict[str, tuple[str, ...]]] = {
    "cute": {
        "strides are at least 0 here; C++ calls negative ones beta": (
            "composition: test_composition(?, (4):(1))",
            "composition: test_composition((4):(1), ?)",
            "composition: test_composition((4):(1), ?) #2",
            "composition: test_composition(?, ?)",
            "composition: test_composition(?, ?) #2",
            "composition: test_composition(?, ?) #3",
            "composition: test_composition(?, (2,4,2):(1,2,8))",
            "composition: test_composition(?, (2,4,2):(1,4,2))",
            "inverse_left: test_left_inverse(?)",
            "inverse_right: test_right_inverse(?)",
        ),
    },
    "tensor-layouts": {
        "strides are at least 0 here, and extents at least 1": (
            "layouts.test_is_empty",
            "layouts.test_cosize_negative_stride_matches_cute",
            "layouts.test_complement_rejects_zero_sized_shapes",
            "layouts.test_compose_negative_stride_matches_cute",
            "tensor.test_negative_stride_slice_preserves_valid_address_range",
        ),
        "refused with other words": (
            *(
                f"layouts.test_compose_divisibility_failures_match_pycute[layout{k}-tiler{k}]"
                for k in range(4)
            ),
            "layouts.test_complement_rejects_negative_strides",
            "layouts.test_coordinate_validation",
            "layouts.test_logical_divide_rejects_over_rank_tiler",
            "layouts.test_logical_product_rejects_nondivisible_complement_path",
            "layouts.test_tile_to_shape_rejects_target_rank_mismatch[12]",
        ),
        "the empty layout coalesces to 1:0, as in C++": ("layouts.test_coalesce_layouts",),
        "a profile has one leaf for each mode, as in C++; theirs has sizes": (
            "layouts.test_coalesce_by_mode_with_profile",
        ),
        "a cotarget that is a shape counts with its size": ("layouts.test_complement_layouts",),
        "an integer tiler divides the layout as a whole, as in C++, not its mode 0": (
            "layouts.test_divide_1d_tiler_on_2d_layout",
        ),
        "composition drops the modes beyond a tuple of tilers, as in C++": (
            "layouts.test_compose_tile_partial_modes",
            "layouts.test_compose_shape_tiler_variants",
        ),
        "tile_to_shape pads the block with modes 1:0, as in C++": (
            "layouts.test_tile_to_shape_rejects_target_rank_mismatch[target_shape1]",
        ),
        "a mode that is a tuple of one stays one": ("layouts.test_tile_to_shape_1d",),
        "a slice lists what it keeps of nested modes, as in C++": (
            "tensor.test_hierarchical_slice_preserves_structure",
        ),
        "the cosize of a composed layout bounds its values, not those of its inner layout": (
            "composed.test_composed_layout_boilerplate",
        ),
        "a swizzle over a layout has one form here, and two there": (
            "composed.test_compose_layout_with_swizzle_rhs_keeps_representable_fast_path",
            "composed.test_compose_layout_on_zero_preoffset_composed_layout_can_collapse",
        ),
        "swizzled where theirs is composed, over 8:2, whose three copies have no layout": (
            "composed.test_logical_product_forwards_through_composed_layout",
            "composed.test_zipped_product_forwards_through_composed_layout",
            "composed.test_tiled_product_forwards_through_composed_layout",
            "composed.test_flat_product_forwards_through_composed_layout",
        ),
        "the same function, with XOR strides, which they have not": (
            "layouts.test_left_inverse_preserves_embedded_swizzle",
            "composed.test_right_inverse_of_zero_preoffset_swizzled_composed_layout",
            "composed.test_left_inverse_of_zero_preoffset_swizzled_composed_layout",
        ),
    },
}
