// Python in a worker: Pyodide with this site's `layouts`. It receives questions and posts answers.
// {id, call, args} → {id, begun} when Python begins, then {id, value} or {id, error}.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const started = (async () => {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  await unpack(python, "layouts");
  return python;
})();
const loaded = new Map();  // name → promise of the package

async function unpack(python, name) {
  const packed = await fetch(new URL(`./${name}.zip`, import.meta.url));
  if (!packed.ok) throw new Error(`This needs ${name}, which this site does not have.`);
  python.unpackArchive(await packed.arrayBuffer(), "zip");
}

onmessage = async ({ data: { id, call, args } }) => {
  try {
    const python = await started, answer = python.pyimport("answer");
    postMessage({ id, begun: call });
    let value = JSON.parse(answer[call](...args));
    if (value.needs) {  // few pages use symbols, so sympy is loaded when first needed
      postMessage({ id, begun: value.needs });
      if (!loaded.has(value.needs)) loaded.set(value.needs, unpack(python, value.needs));
      await loaded.get(value.needs);
      value = JSON.parse(answer[call](...args));
    }
    postMessage({ id, value: value.needs ? { error: `This needs ${value.needs}, which could not be loaded.` } : value });
  } catch (error) {
    postMessage({ id, error: String(error).trim().split("\n").pop() });
  }
};
