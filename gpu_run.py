import sys,time,torch,statistics
from pathlib import Path
import cutlass.cute as cute
here=Path(__file__).parent
load=lambda n: getattr(cute.runtime.load_module(str(here/"obj"/f"{n}.o"),enable_tvm_ffi=True),"gemm")
def timed(f,n):
    a,b=torch.cuda.Event(enable_timing=True),torch.cuda.Event(enable_timing=True)
    a.record()
    for _ in range(n): f()
    b.record(); b.synchronize(); return a.elapsed_time(b)/n
torch.manual_seed(0)
c=load("ceiling")
num=torch.randn(256,64,device="cuda").bfloat16(); sums=torch.empty(132,256,device="cuda")
for bl in (132,):
    for r in (1024,4096,16384):
        c(num,sums,r,bl); t=min(timed(lambda:c(num,sums,r,bl),3) for _ in range(4)); print("ceiling",bl,r,"ms %.3f TFLOP/s %.1f"%(t,bl*8*r*4*2*64*64*16/t/1e9),flush=True)
names=sys.argv[1].split(",")
K={n:load(n) for n in names}
def ints(r,cc,dt=torch.bfloat16): return torch.randint(-2,3,(r,cc),device="cuda").to(dt)
for n,k in K.items():
    bad=[]
    for (m,nn,kk) in ((520,264,136),(48,128,12),(1,1,1),(129,127,65),(1000,1001,999)):
        p=-(-kk//8)*8; q=-(-nn//8)*8
        a=ints(m,p)[:,:kk]; bt=ints(nn,p)[:,:kk]
        o=torch.full((m,q),float("nan"),device="cuda",dtype=torch.bfloat16)
        k(a,bt.mT,o[:,:nn],132)
        if not torch.equal(o[:,:nn],(a.double()@bt.mT.double()).bfloat16()) or not o[:,nn:].isnan().all(): bad.append((m,nn,kk))
    if bad: print("WRONG",n,bad,flush=True)
for S in (4096,8192):
    a=torch.randn(S,S,device="cuda").bfloat16(); b=torch.randn(S,S,device="cuda").bfloat16().mT; o=torch.empty(S,S,device="cuda",dtype=torch.bfloat16)
    T={n:[] for n in ("torch.mm",*names)}
    runs={"torch.mm":lambda: torch.mm(a,b,out=o),**{n:(lambda k=k:k(a,b,o,132)) for n,k in K.items()}}
    for r in range(3):
        for n,f in runs.items():
            if S>4096 and n in ("mma","mma_k8","swizzled","ldmatrix_x4"): continue
            time.sleep(.1); timed(f,2); T[n].append(timed(f,8))
    for n,t in T.items():
        if t: print(S,"%-14s"%n,"%.4f ms %.1f TFLOP/s"%(statistics.median(t),2*S**3/statistics.median(t)/1e9),flush=True)
