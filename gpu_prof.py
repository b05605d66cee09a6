import sys,torch
from pathlib import Path
import cutlass.cute as cute
here=Path(__file__).parent
load=lambda n: getattr(cute.runtime.load_module(str(here/"obj"/f"{n}.o"),enable_tvm_ffi=True),"gemm")
S=4096
a=torch.randn(S,S,device="cuda").bfloat16(); b=torch.randn(S,S,device="cuda").bfloat16().mT; o=torch.empty(S,S,device="cuda",dtype=torch.bfloat16)
for n in sys.argv[1].split(","):
    load(n)(a,b,o,132)
torch.cuda.synchronize()
