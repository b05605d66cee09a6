"""python -m cutedsl_gemm demo | bench"""

import argparse


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m cutedsl_gemm",
        description="GEMM for Hopper, built of the layouts that its plan shows.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="the whole idea, on any machine")
    commands.add_parser("bench", help="speed beside torch.mm, on an H100")
    if parser.parse_args().command == "demo":
        from cutedsl_gemm import demo

        demo.main()
    else:
        import torch

        if not torch.cuda.is_available():
            parser.exit(2, "bench measures a GPU, and torch sees none here\n")
        from cutedsl_gemm import bench

        bench.main()


if __name__ == "__main__":
    main()
