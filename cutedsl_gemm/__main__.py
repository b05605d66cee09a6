"""python -m cutedsl_gemm demo | hierarchy | build | ladder | bench | wavefronts"""

import argparse
from pathlib import Path

SHAPES = "sweep", "curve", "squares", "weights", "split"  # of bench, which loads torch


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m cutedsl_gemm",
        description="GEMM for Hopper, built of the layouts that its plan shows.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="the whole idea, on any machine")
    tiles = commands.add_parser("hierarchy", help="block, warp and thread tiles of a kernel")
    tiles.add_argument("kernel", nargs="?", help="one of cutedsl_gemm.KERNELS")
    tiles.add_argument("--svg", type=Path, metavar="FILE", help="draw them there, not here")
    build = commands.add_parser("build", help="all kernels gemm chooses, compiled ahead, anywhere")
    build.add_argument("--folder", type=Path, metavar="F", help="to ship; else the cache folder")
    ladder = commands.add_parser("ladder", help="every kernel, from naive to pingpong, on a GPU")
    ladder.add_argument("--size", type=int, metavar="N", help="N×N×N for all of them")
    ladder.add_argument("--plot", type=Path, metavar="FILE", help="draw the tables there, too")
    bench = commands.add_parser("bench", help="speed beside torch.mm, quack and Triton, on an H100")
    bench.add_argument("--shapes", choices=SHAPES, default="sweep")
    bench.add_argument("--sustained", action="store_true", help="at the power limit, not in bursts")
    bench.add_argument("--csv", type=Path, metavar="FILE", help="write the table there, too")
    bench.add_argument("--plot", type=Path, metavar="FILE", help="draw it there: .svg, .png, .pdf")
    counters = commands.add_parser("wavefronts", help="the bank model beside an H100's counters")
    counters.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there")
    asked = parser.parse_args()
    if asked.command == "demo":
        from cutedsl_gemm import demo

        demo.main()
    elif asked.command == "build":
        from cutedsl_gemm import ahead

        ahead.main(asked.folder)
    elif asked.command == "hierarchy":
        from cutedsl_gemm import hierarchy

        hierarchy.main(asked.kernel, asked.svg)
    else:
        import torch

        if not torch.cuda.is_available():
            parser.exit(2, f"{asked.command} measures a GPU, and torch sees none here\n")
        if asked.command == "bench":
            from cutedsl_gemm import bench as speed

            speed.main(asked.shapes, asked.sustained, asked.csv, asked.plot)
        elif asked.command == "ladder":
            from cutedsl_gemm import ladder as climb

            climb.main(asked.size, asked.plot)
        else:
            from cutedsl_gemm import wavefronts

            wavefronts.main(asked.markdown)


if __name__ == "__main__":
    main()
