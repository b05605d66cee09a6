// One worker for the page, started at the first question. ask("show", expression) → a promise of the answer.
const here = new URL(".", document.currentScript.src).href;
const CANNOT = location.protocol === "file:"
  ? "A page opened as a file cannot start Python. Run  python -m http.server  in the site's folder, and open http://localhost:8000/ ."
  : "Python did not start.";
const LIMIT = 10_000;  // milliseconds for one answer; loading sympy takes longer
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
  let watch;  // the timeout of the current question
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

// Rejects the current question and passes the waiting ones to a new Python.
function tooLong(id) {
  worker.terminate();
  worker = startWorker();
  waiting.get(id).reject(new Error("This took too long. Python was stopped and restarts."));
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

// Puzzles, on any page: the verdict, and the answer's table, appear as the reader types.
for (const puzzle of document.querySelectorAll(".puzzle")) {
  const [input, verdict] = [puzzle.querySelector("input"), puzzle.querySelector(".verdict")];
  const drawn = puzzle.querySelector(".drawn");
  let latest = 0;
  input.addEventListener("focus", () => ask("instructions").catch(() => {}), { once: true });
  input.addEventListener("input", async () => {
    const mine = ++latest;
    puzzle.dataset.right = "";
    if (!input.value.trim()) {
      verdict.textContent = drawn.innerHTML = "";
      return;
    }
    verdict.textContent ||= "Starting Python …";
    try {
      const { right, why, error, html } = await ask("judge", input.value, puzzle.dataset.checks, puzzle.dataset.shown);
      if (mine !== latest) return;
      puzzle.dataset.right = Boolean(right);
      if (html !== undefined) drawn.innerHTML = html;  // else the text cannot be read, yet
      verdict.textContent = right ? "Right." : why ?? error;
    } catch (error) {
      verdict.textContent = error.message;
    }
  });
}
