"""The sm70 family (fp16, mma.m8n8k4): plan, device code, executor."""
