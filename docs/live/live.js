// One worker for the page, started when first asked. ask("show", expression) → a promise of the answer.
const here = new URL(".", document.currentScript.src).href;
const CANNOT = location.protocol === "file:"
  ? "Opened as a file, a page may not start Python. Run  python -m http.server  in the site's folder, and open http://localhost:8000/ ."
  : "Python did not start here.";
const LIMIT = 10_000;  // milliseconds of one answer; sympy, where it is needed, takes a few more to come
const SYMPY = 30_000;
let worker, asked = 0;
const waiting = new Map();

function ask(call, ...args) {
  return new Promise((resolve, reject) => {
    try {
      worker ??= startWorker();
    } catch {
      reject(new Error(CANNOT));
      return;
    }
    const id = asked++;
    waiting.set(id, { call, args, resolve, reject });
    worker.postMessage({ id, call, args });
  });
}

function startWorker() {
  const made = new Worker(here + "worker.mjs", { type: "module" });
  let watch;  // over the question at work
  made.onmessage = ({ data: { id, begun, value, error } }) => {
    clearTimeout(watch);
    if (begun) {
      watch = setTimeout(() => tooLong(id), begun === "sympy" ? SYMPY : LIMIT);
      return;
    }
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    error === undefined ? resolve(value) : reject(new Error(error));
  };
  made.onerror = (event) => {
    event.preventDefault?.();
    end(CANNOT);
  };
  return made;
}

// The question at work is refused; those behind it go to a new Python.
function tooLong(id) {
  worker.terminate();
  worker = startWorker();
  waiting.get(id).reject(new Error("This takes too long here. Python was ended, and starts anew."));
  waiting.delete(id);
  for (const [left, { call, args }] of waiting) worker.postMessage({ id: left, call, args });
}

function end(why) {
  worker?.terminate();
  worker = undefined;
  const left = [...waiting.values()];
  waiting.clear();
  for (const { reject } of left) reject(new Error(why));
}

// Puzzles, on any page: the verdict follows the typing.
for (const puzzle of document.querySelectorAll(".puzzle")) {
  const [input, verdict] = [puzzle.querySelector("input"), puzzle.querySelector(".verdict")];
  let latest = 0;
  input.addEventListener("focus", () => ask("instructions").catch(() => {}), { once: true });
  input.addEventListener("input", async () => {
    const mine = ++latest;
    puzzle.dataset.right = "";
    if (!input.value.trim()) {
      verdict.textContent = "";
      return;
    }
    verdict.textContent ||= "Python starts …";
    try {
      const { right, why, error } = await ask("judge", input.value, puzzle.dataset.checks);
      if (mine !== latest) return;
      puzzle.dataset.right = Boolean(right);
      verdict.textContent = right ? "Right." : why ?? error;
    } catch (error) {
      verdict.textContent = error.message;
    }
  });
}
