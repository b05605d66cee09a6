// Python in a worker. It posts {ready}, receives {call, args}, and posts {value} or {error} for each.
// worker.mjs?sympy is the Python that has sympy too. Each starts from the snapshot NAME.bin.gz of its
// memory; without one, or where a browser cannot use it, Python starts from the beginning.
import { startPython } from "./python.mjs";

const name = new URL(import.meta.url).search.slice(1) || "layouts";
const archives = [...new Set(["layouts.zip", `${name}.zip`])];
let answers;  // the module answer.py

async function start() {
  const [memory, ...zips] = await Promise.all([
    load(`${name}.bin.gz`).then(unzipped).catch(() => undefined),
    ...archives.map((archive) => load(archive).then(bytes)),
  ]);
  const packed = Object.fromEntries(archives.map((archive, k) => [archive, zips[k]]));
  const restored = memory && await startPython(memory, packed).catch(() => undefined);
  const python = restored ?? await startPython(undefined, packed);
  answers = python.pyimport("answer");
  if (name === "sympy") answers.show("(m,4):(4,1)");  // the first answer imports what symbols need
  postMessage({ ready: { isRestored: Boolean(restored) } });
}

async function load(file) {
  const found = await fetch(new URL(file, import.meta.url));
  if (!found.ok) throw new Error(`This site does not have ${file}.`);
  return found;
}

async function bytes(found) {
  return new Uint8Array(await found.arrayBuffer());
}

function unzipped(found) {
  return bytes(new Response(found.body.pipeThrough(new DecompressionStream("gzip"))));
}

start().catch((error) => postMessage({ failed: error.message }));

onmessage = ({ data: { call, args } }) => {
  try {
    postMessage({ value: JSON.parse(answers[call](...args)) });
  } catch (error) {
    postMessage({ error: String(error).trim().split("\n").pop() });
  }
};
