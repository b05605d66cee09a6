"""What the device code of all families shares: lowering of layouts, guarded copies, launch."""
