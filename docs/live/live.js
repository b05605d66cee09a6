// One worker for the page, started when first asked. ask("show", expression) → a promise of the answer.
const here = new URL(".", document.currentScript.src).href;
const CANNOT = location.protocol === "file:"
  ? "Opened as a file, a page may not start Python. Run  python -m http.server  in the site's folder, and open http://localhost:8000/ ."
  : "Python did not start here.";
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
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, call, args });
  });
}

function startWorker() {
  const made = new Worker(here + "worker.mjs", { type: "module" });
  made.onmessage = ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    error === undefined ? resolve(JSON.parse(value)) : reject(new Error(error));
  };
  made.onerror = (event) => {
    event.preventDefault?.();
    for (const { reject } of waiting.values()) reject(new Error(CANNOT));
    waiting.clear();
  };
  return made;
}

// Puzzles, on any page: the verdict follows the typing.
for (const puzzle of document.querySelectorAll(".puzzle")) {
  const [input, verdict] = [puzzle.querySelector("input"), puzzle.querySelector(".verdict")];
  let latest = 0;
  input.addEventListener("focus", () => ask("instructions").catch(() => {}), { once: true });
  input.addEventListener("input", async () => {
    const mine = ++latest;
    if (!input.value.trim()) {
      verdict.textContent = "";
      puzzle.dataset.right = "";
      return;
    }
    verdict.textContent ||= "Python starts …";
    try {
      const { right, why } = await ask("judge", input.value, puzzle.dataset.check);
      if (mine !== latest) return;
      puzzle.dataset.right = right;
      verdict.textContent = right ? "Right." : why;
    } catch (error) {
      verdict.textContent = error.message;
    }
  });
}
