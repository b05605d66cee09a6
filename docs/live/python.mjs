// Pyodide, from a snapshot of the memory of an earlier one if there is one: a second instead of six.
import createModule from "./pyodide/pyodide.asm.mjs";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const PAGE = 65_536;  // bytes of a page of WebAssembly memory

// Python, with each archive of {name.zip: bytes} on its path. `memory` is what a `snapshot` returned.
export async function startPython(memory, archives, options = {}) {
  const python = await loadPyodide({
    ...options,
    _loadSnapshot: memory,
    async createPyodideModule(settings) {
      const module = await createModule(settings);
      const size = memory ? memory.length - memory.length % PAGE : 0;
      if (size > module.HEAP8.length) module._emscripten_resize_heap(size);
      return module;
    },
  });
  for (const [name, bytes] of Object.entries(archives)) {
    const path = `/lib/${name}`;
    python.FS.writeFile(path, bytes);
    python.runPython(`import sys; "${path}" in sys.path or sys.path.insert(0, "${path}")`);
  }
  return python;
}

// The memory of a Python that was started with the option _makeSnapshot.
export function snapshot(python) {
  python.runPython("import gc; gc.collect()");
  clear(python._module);
  return python.makeMemorySnapshot();
}

// Writes zeros to all free memory: what was freed still has its contents, which do not compress.
function clear(module) {
  const taken = [];
  for (let size = 1 << 20; size >= 32; size >>= 1) {
    for (;;) {
      const end = module._sbrk(0), at = module._malloc(size);
      if (module._sbrk(0) !== end) {  // no free block of this size is left
        module._free(at);
        break;
      }
      module.HEAPU8.fill(0, at, at + size);
      taken.push(at);
    }
  }
  taken.forEach((at) => module._free(at));
}
