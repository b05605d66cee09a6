import sys,time
def one(case):
    import torch
    from cutedsl_gemm import plan_for
    from cutedsl_gemm.kernels import build
    from cutedsl_gemm.rungs import named
    name,dt,(oa,ob)=case
    dtype=getattr(torch,dt)
    mk=lambda r,c,o: torch.zeros(r,c,dtype=dtype) if o=="row" else torch.zeros(c,r,dtype=dtype).mT
    try:
        p=plan_for(mk(1000,1024,oa),mk(1024,1000,ob),kernel=name)
        build.load(p,named(name).arch((9,0)))
    except Exception as e: return f"{case}: {type(e).__name__} {str(e)[:300]}"
if __name__=="__main__":
    from concurrent.futures import ProcessPoolExecutor
    from itertools import product
    from cutedsl_gemm.rungs import KERNELS
    t=time.time()
    cases=[(n,str(d)[6:],o) for n,k in KERNELS.items() for d in k.terms.dtypes for o in product(("row","column"),repeat=2) if d==k.terms.dtypes[0] or o==("row","column")]
    import multiprocessing as mp
    with ProcessPoolExecutor(14,mp_context=mp.get_context("spawn")) as ex:
        for r in ex.map(one,cases,chunksize=3):
            if r: print("COMPILE",r,flush=True)
    print("warmed",len(cases),"in",time.time()-t,flush=True)
