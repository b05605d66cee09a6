"""From a plan to a callable.

build      compile a plan, load its kernel, inspect its machine code
library    link and load a kernel as a shared library
cache      libraries on disk, shared by processes
versions   do the installed parts of the CuTe DSL have one version, in range?
sass       the machine code: registers, spills, instruction counts
progress   a spinner and a progress bar
"""
