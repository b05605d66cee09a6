// Python for a page, in workers. ask(stream, "show", expression) → a promise of the answer.
const here = new URL(".", document.currentScript.src).href;
const CANNOT = location.protocol === "file:"
  ? "A page opened as a file cannot start Python. Run  python -m http.server  in the site's folder, and open http://localhost:8000/ ."
  : "Python did not start. If this site was built without npm, install npm and run  make docs  again.";
const LIMIT = 10_000;  // milliseconds for one answer
const OUTDATED = 1_000;  // for one whose question has been replaced

// One worker, which answers one question after another. A newer question of a stream, such as an
// input field, replaces its older ones; their promises stay pending.
class Python {
  constructor(name) {
    this.name = name;
    this.waiting = [];
  }

  start() {
    if (this.worker) return;
    this.running = undefined;
    this.worker = new Worker(`${here}worker.mjs?${this.name}`, { type: "module" });
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.fail(CANNOT);
    };
  }

  // Starts before there is a question; why it cannot start, the question will say.
  preload() {
    try {
      this.start();
    } catch {}
  }

  ask(stream, call, args) {
    return new Promise((resolve, reject) => {
      this.waiting = this.waiting.filter((question) => question.stream !== stream);
      this.waiting.push({ stream, call, args, resolve, reject });
      if (this.running?.stream === stream) this.allow(OUTDATED);
      try {
        this.start();
      } catch {
        this.fail(CANNOT);
      }
      this.next();
    });
  }

  // Sends the next question, if Python is there and idle.
  next() {
    if (!this.ready || this.running || !this.waiting.length) return;
    this.running = { ...this.waiting.shift(), begun: performance.now() };
    this.worker.postMessage({ call: this.running.call, args: this.running.args });
    this.allow(LIMIT);
  }

  // Ends the current question when it has run for `limit` milliseconds.
  allow(limit) {
    clearTimeout(this.watch);
    const left = this.running.begun + limit - performance.now();
    this.watch = setTimeout(() => this.stop(limit), Math.max(0, left));
  }

  receive({ ready, failed, value, error }) {
    if (failed) {
      this.fail(failed);
    } else if (ready) {
      this.ready = ready;
    } else {
      clearTimeout(this.watch);
      const { resolve, reject } = this.running;
      this.running = undefined;
      error === undefined ? resolve(value) : reject(new Error(error));
    }
    this.next();
  }

  // Python cannot be interrupted: a new one answers the next questions.
  stop(limit) {
    const { reject } = this.running;
    this.end();
    this.start();
    reject(new Error(`No answer within ${limit / 1000} s: Python was stopped.`));
  }

  fail(why) {
    const left = [this.running, ...this.waiting].filter(Boolean);
    this.waiting = [];
    this.end();
    for (const { reject } of left) reject(new Error(why));
  }

  end() {
    clearTimeout(this.watch);
    this.worker?.terminate();
    this.worker = this.running = this.ready = undefined;
  }
}

// Symbols need sympy, which is large: a Python of its own has it.
const pythons = { layouts: new Python("layouts"), sympy: new Python("sympy") };

async function ask(stream, call, ...args) {
  const answer = await pythons.layouts.ask(stream, call, args);
  return answer.needs in pythons ? pythons[answer.needs].ask(stream, call, args) : answer;
}

// Puzzles, on any page: the verdict, and the answer's table, appear as the reader types.
for (const puzzle of document.querySelectorAll(".puzzle")) {
  const [input, verdict] = [puzzle.querySelector("input"), puzzle.querySelector(".verdict")];
  const drawn = puzzle.querySelector(".drawn");
  let latest = 0;
  input.addEventListener("focus", () => pythons.layouts.preload(), { once: true });
  input.addEventListener("input", async () => {
    const mine = ++latest;
    puzzle.dataset.right = "";
    if (!input.value.trim()) {
      verdict.textContent = drawn.innerHTML = "";
      return;
    }
    verdict.textContent ||= "Starting Python …";
    try {
      const { checks, shown } = puzzle.dataset;
      const { right, why, error, html } = await ask(puzzle, "judge", input.value, checks, shown);
      if (mine !== latest) return;
      puzzle.dataset.right = Boolean(right);
      if (html !== undefined) drawn.innerHTML = html;  // else the text cannot be read, yet
      verdict.textContent = right ? "Right." : why ?? error;
    } catch (error) {
      if (mine === latest) verdict.textContent = error.message;
    }
  });
}
