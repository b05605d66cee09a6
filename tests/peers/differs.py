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
        "an int is what C++ calls static; only of a run-time extent 1 does C++ keep the stride": (
            "logical_divide: ASSERT_TRUE(decltype(stride<1>(result)==Int<32>{})value)",
            "logical_divide: ASSERT_TRUE(decltype(stride<1>(result)==Int<48>{})value)",
            *(
                f"compact_xmajor: {check}(({order}({case})){number}"
                for order in ("compact_col_major", "compact_row_major")
                for check, case, number in (
                    ("CUTE_STATIC_ASSERT_V", "1)==Int<1>{}", ""),
                    ("ASSERT_TRUE", "1)==1", ""),
                    ("ASSERT_TRUE", "1)==1", " #2"),
                    ("ASSERT_TRUE", "1,3)==3", ""),
                    *(("ASSERT_TRUE", "test)==result", f" #{k}") for k in range(3, 7)),
                )
            ),
        ),
        "an int is what C++ calls static; C++ does not merge modes of run-time extents": (
            "logical_divide: ASSERT_TRUE(bool(shape(result)==make_shape(_64{},make_shape(_2{},4"
            "))))",
            "logical_divide: ASSERT_TRUE(bool(stride(result)==make_stride(_1{},make_stride(_64{},"
            "_128{}))))",
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
        "the same function, but swizzled where theirs is composed": (
            "layouts.test_compose_layout_with_swizzled_layout",
            "layouts.test_compose_layout_with_swizzled_layout_nontrivial",
            "layouts.test_max_common_reverse_swizzle_exact_form_matches_plain_layout",
            "composed.test_compose_double_swizzle_is_exact",
            "composed.test_compose_layout_with_swizzle_rhs_falls_back_to_exact_composed_layout",
            "composed.test_affine_only_boundaries_reject_composed_layout",
            "composed.test_zipped_divide_forwards_through_composed_layout",
            "composed.test_tiled_divide_forwards_through_composed_layout",
            "composed.test_flat_divide_forwards_through_composed_layout",
            "composed.test_logical_divide_forwards_through_composed_layout",
            "composed.test_compose_composed_layout_as_outer_pushes_through",
            "composed.test_compose_with_hierarchical_inner_layout",
            "composed.test_logical_divide_on_hierarchical_composed",
            "composed.test_full_slice_on_composed_layout_preserves_identity",
            "composed.test_tensor_view_with_composed_layout",
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
