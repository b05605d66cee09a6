// The names of operations while an expression is typed: what completes a name, and the call around
// the caret. They come from the list of operations on the page; in quotation marks, instructions do.
const SHOWN = 8;
const operations = new Map([...document.querySelectorAll("[data-operation]")].map((item) => [
  item.dataset.operation,
  { call: item.dataset.call, line: item.querySelector("p").innerHTML, address: item.querySelector("a").href },
]));

const known = new Set([...operations.keys(), ..."S Sw Swizzle Layout ComposedLayout E o None True False".split(" ")]);

// Whether the caret is in a text in quotation marks.
function isQuoted(field) {
  return (field.value.slice(0, field.selectionStart).match(/"/g)?.length ?? 0) % 2 === 1;
}

// What is typed before the caret: the beginning of a name, or of a text in quotation marks.
function typed(field) {
  if (field.selectionStart !== field.selectionEnd) return "";
  const before = field.value.slice(0, field.selectionStart);
  return before.match(isQuoted(field) ? /[^"]*$/ : /(?<![\w@])[A-Za-z_]\w*$/)?.[0] ?? "";
}

// The names that complete `word`, those that begin with it first.
function completions(word, candidates) {
  const small = word.toLowerCase();
  const found = candidates.filter((name) => name.toLowerCase().includes(small) && name !== word);
  const begins = (name) => Number(!name.toLowerCase().startsWith(small));
  return found.sort((a, b) => begins(a) - begins(b) || a.localeCompare(b)).slice(0, SHOWN);
}

// The operation whose arguments the caret is in.
function callAround(text) {
  let closed = 0;
  for (let at = text.length - 1; at >= 0; at--) {
    if (text[at] === ")") closed++;
    if (text[at] !== "(" || --closed >= 0) continue;
    const name = text.slice(0, at).match(/[A-Za-z_]\w*$/)?.[0];
    if (operations.has(name)) return name;
    closed = 0;
  }
}

// Whether an expression has a name that is neither an operation, nor a keyword, nor in quotation marks.
function mayHaveSymbols(text) {
  const plain = text.replace(/"[^"]*"|'[^']*'|\b[A-Za-z]\w*\s*=/g, " ");
  return (plain.match(/(?<![\w@])[A-Za-z]\w*/g) ?? []).some((name) => !known.has(name));
}

class Names {
  constructor(field, list, hint, accesses, changed) {
    Object.assign(this, { field, list, hint, accesses, changed, chosen: -1 });
    this.help = hint.innerHTML;
    field.addEventListener("input", () => this.offer());
    field.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("blur", () => this.close());
    document.addEventListener("selectionchange", () => document.activeElement === field && this.tell());
    list.addEventListener("pointerdown", (event) => {
      event.preventDefault();  // the field keeps the focus
      const item = event.target.closest("li");
      if (item) this.take(item.dataset.name);
    });
  }

  get isOpen() {
    return !this.list.hidden;
  }

  // Whether the caret is at the end of what begins a longer name.
  get isUnfinished() {
    const word = typed(this.field);
    return this.isOpen || word && [...operations.keys()].some((name) => name.startsWith(word));
  }

  offer() {
    const word = typed(this.field);
    const candidates = isQuoted(this.field) ? this.accesses : [...operations.keys()];
    const found = word.length >= 2 ? completions(word, candidates) : [];
    this.list.replaceChildren(...found.map((name, k) => {
      const item = document.createElement("li");
      Object.assign(item, { id: `name${k}`, role: "option" });
      item.dataset.name = name;
      item.innerHTML = `<b>${name}</b>${operations.get(name)?.line ?? ""}`;
      return item;
    }));
    this.list.hidden = !found.length;
    this.field.setAttribute("aria-expanded", this.isOpen);
    this.choose(-1);
    this.tell();
  }

  choose(k) {
    const items = [...this.list.children];
    this.chosen = k;
    items.forEach((item, at) => item.setAttribute("aria-selected", at === k));
    items[k]?.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", items[k]?.id ?? "");
  }

  key(event) {
    const count = this.list.children.length;
    if (this.isOpen && event.key === "ArrowDown") this.choose((this.chosen + 1) % count);
    else if (this.isOpen && event.key === "ArrowUp") this.choose((Math.max(this.chosen, 0) + count - 1) % count);
    else if (this.isOpen && event.key === "Escape") this.close();
    else if (this.isOpen && (event.key === "Tab" && !event.shiftKey || event.key === "Enter" && this.chosen >= 0)) {
      this.take(this.list.children[Math.max(0, this.chosen)].dataset.name);
    } else if (event.key === "Enter" && !event.shiftKey) {
      this.close();
      this.changed(true);
    } else return;
    event.preventDefault();
  }

  // Puts a name in the place of its beginning.
  take(name) {
    const { field } = this, word = typed(field), end = field.selectionStart;
    const open = !isQuoted(field) && field.value[end] !== "(" ? "(" : "";
    field.setRangeText(name + open, end - word.length, end, "end");
    this.close();
    this.changed();
    this.tell();
  }

  close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", false);
  }

  // Writes the signature and the line of the operation around the caret.
  tell() {
    const name = callAround(this.field.value.slice(0, this.field.selectionStart));
    const { call, line, address } = operations.get(name) ?? {};
    if (this.hint.dataset.name === (name ?? "")) return;
    this.hint.dataset.name = name ?? "";
    this.hint.innerHTML = name ? `<code></code> ${line} <a href="${address}">more</a>` : this.help;
    if (name) this.hint.firstChild.textContent = call;
  }
}
