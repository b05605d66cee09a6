// Python beside the page: Pyodide with the very `layouts` of this site. Messages in, answers out.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const started = (async () => {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  const packed = await fetch(new URL("./layouts.zip", import.meta.url));
  python.unpackArchive(await packed.arrayBuffer(), "zip");
  return python.pyimport("answer");
})();

onmessage = async ({ data: { id, call, args } }) => {
  try {
    const answer = await started;
    postMessage({ id, value: answer[call](...args) });
  } catch (error) {
    postMessage({ id, error: String(error) });
  }
};
