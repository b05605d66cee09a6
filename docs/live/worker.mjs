// Python beside the page: Pyodide with the very `layouts` of this site. Messages in, answers out.
// {id, call, args} → {id, begun} when Python sets to work, then {id, value} or {id, error}.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const started = (async () => {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  await unpack(python, "layouts");
  return python;
})();
const brought = new Map();  // name → the promise of it

async function unpack(python, name) {
  const packed = await fetch(new URL(`./${name}.zip`, import.meta.url));
  if (!packed.ok) throw new Error(`This needs ${name}, which this site has not.`);
  python.unpackArchive(await packed.arrayBuffer(), "zip");
}

onmessage = async ({ data: { id, call, args } }) => {
  try {
    const python = await started, answer = python.pyimport("answer");
    postMessage({ id, begun: call });
    let value = JSON.parse(answer[call](...args));
    if (value.needs) {  // symbols are few pages' wish: brought when first asked for
      postMessage({ id, begun: value.needs });
      if (!brought.has(value.needs)) brought.set(value.needs, unpack(python, value.needs));
      await brought.get(value.needs);
      value = JSON.parse(answer[call](...args));
    }
    postMessage({ id, value: value.needs ? { error: `This needs ${value.needs}, which is not here.` } : value });
  } catch (error) {
    postMessage({ id, error: String(error).trim().split("\n").pop() });
  }
};
