"""The SIMT family (fp32): plans, device code, executor."""
