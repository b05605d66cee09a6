// The playground: Python answers what is typed, and the address keeps it.
const $ = (id) => document.getElementById(id);
const fields = Object.fromEntries(["expression", "access", "lanes", "unit"].map((id) => [id, $(id)]));
const first = Object.fromEntries(Object.entries(fields).map(([id, field]) => [id, field.value]));
const PAUSE = 120;  // milliseconds without a key, after which typing has ended
const PAUSE_IN_NAME = 600;  // within what may become a longer name
const PATIENCE = 400;  // before the page says what it waits for
let latest = 0, pause, isAccessChosen;

const accesses = [...fields.access.options].map((option) => option.value).filter(Boolean);
const names = new Names(fields.expression, $("names"), $("hint"), accesses, changed);

// ------------------------------------------------------------------------ the address

function fromAddress() {
  const [expression, ...rest] = location.hash.slice(1).split("&");
  const given = new URLSearchParams(rest.join("&"));
  const isFirst = !expression && !rest.length;
  for (const id of ["access", "lanes", "unit"]) {
    const value = isFirst ? first[id] : given.get(id) ?? "";
    if (fields[id].options && ![...fields[id].options].some((option) => option.value === value)) {
      fields[id].add(new Option(value));  // unknown; Python's answer says so
    }
    fields[id].value = value;
  }
  fields.expression.value = decoded(expression) || first.expression;
  isAccessChosen = !isFirst;
  grow();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function toAddress(put = "replaceState") {
  const more = new URLSearchParams();
  for (const id of ["access", "lanes", "unit"]) if (fields[id].value) more.set(id, fields[id].value);
  const tail = more.size ? `&${more}` : "";
  history[put](null, "", `#${encodeURIComponent(fields.expression.value)}${tail}`);
}

const isFirst = () => Object.entries(fields).every(([id, field]) => field.value === first[id]);

// ------------------------------------------------------------------------ questions

// Asks when typing has ended, or at once.
function changed(atOnce = false) {
  if (!isAccessChosen && fields.expression.value !== first.expression) fields.access.value = "";
  grow();
  toAddress();
  latest++;  // the answer under way is not to this
  clearTimeout(pause);
  if (atOnce) answer();
  else pause = setTimeout(answer, names.isUnfinished ? PAUSE_IN_NAME : PAUSE);
}

async function answer() {
  clearTimeout(pause);
  const mine = ++latest;
  const patience = setTimeout(() => mine === latest && ($("state").textContent = waiting()), PATIENCE);
  if (mayHaveSymbols(fields.expression.value)) pythons.sympy.preload();
  try {
    const { expression, access, lanes, unit } = fields;
    const seen = await ask("answer", "show", expression.value, access.value, lanes.value, unit.value);
    if (mine !== latest) return;
    $("state").textContent = "";
    $("error").textContent = seen.error ?? "";
    stale(Boolean(seen.error));
    if (!seen.error) show(seen);
  } catch (error) {
    if (mine !== latest) return;
    $("state").textContent = error.message;
    $("error").textContent = "";
    stale(!isFirst());
  } finally {
    clearTimeout(patience);
    if (mine === latest) document.body.dataset.ready = mine;
  }
}

function waiting() {
  if (pythons.sympy.waiting.length) return "Symbols need sympy, which is being loaded …";
  return pythons.layouts.ready ? "Computing …" : "Starting Python …";
}

// ------------------------------------------------------------------------ the answer

// Dims an answer to an earlier expression, and disables its buttons.
function stale(is) {
  $("answer").dataset.stale = $("answer").inert = is;
}

function show(seen) {
  $("table").innerHTML = seen.html ?? "";
  $("value").textContent = seen.text;
  $("value").classList.toggle("long", seen.text.includes("\n"));
  $("facts").replaceChildren(...seen.facts.map(fact));
  $("banks").textContent = seen.banks ?? "";
  for (const form of ["svg", "latex"]) $(form).hidden = !seen.html;
  showSteps();
}

// A fact: its first line, which unfolds its reason.
function fact(text) {
  const [line, ...reason] = text.split("\n"), pre = document.createElement("pre");
  if (!reason.length) {
    pre.textContent = line;
    return pre;
  }
  const fold = document.createElement("details"), summary = document.createElement("summary");
  [summary.textContent, pre.textContent] = [line, reason.join("\n")];
  fold.append(summary, pre);
  return fold;
}

async function showSteps() {
  const mine = latest;
  const { text } = await ask("steps", "steps", fields.expression.value).catch(() => ({}));
  if (mine !== latest) return;
  $("steps").hidden = !text;
  $("steps").querySelector("pre").textContent = text ?? "";
}

async function copyDrawing(form) {
  const { expression, unit } = fields;
  const { text } = await ask("drawing", "drawing", expression.value, unit.value, form);
  copy($(form), text);
}

async function copy(button, text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
  } else {  // a page over plain http has no clipboard
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const name = button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = name), 1000);
}

// ------------------------------------------------------------------------ the page

// The field of the expression is as high as its text; lanes are those of an access.
function grow() {
  $("lanes").parentElement.hidden = !fields.access.value;
  fields.expression.style.height = "auto";
  fields.expression.style.height = `${fields.expression.scrollHeight + 2}px`;
}

// The theme chosen on the other pages; a browser may deny access to it.
function followTheme() {
  try {
    document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "auto";
  } catch {}
}

function filter() {
  const words = $("filter").value.toLowerCase().split(/\s+/);
  for (const item of document.querySelectorAll("[data-operation]")) {
    const text = item.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("#operations section")) {
    section.hidden = !section.querySelector("[data-operation]:not([hidden])");
  }
}

// Asks for an example; the address before it stays in the history.
function tryExample(example) {
  fields.expression.value = example.textContent;
  fields.access.value = example.dataset.access ?? "";
  fields.lanes.value = fields.unit.value = "";
  grow();
  toAddress("pushState");
  answer();
  scrollTo({ top: 0 });
}

async function begin() {
  const start = performance.now();
  followTheme();
  fromAddress();
  addEventListener("hashchange", () => (fromAddress(), answer()));
  addEventListener("resize", grow);
  fields.access.addEventListener("input", () => (isAccessChosen = true));
  for (const field of Object.values(fields)) field.addEventListener("input", () => changed());
  for (const example of document.querySelectorAll("[data-example]")) {
    example.onclick = () => tryExample(example);
  }
  $("filter").addEventListener("input", filter);
  for (const form of ["svg", "latex"]) $(form).onclick = () => copyDrawing(form);
  $("link").onclick = () => (toAddress(), copy($("link"), location.href));
  if (isFirst()) show(JSON.parse($("first").textContent));  // the build knows this answer
  else stale(true);
  await answer();
  document.body.dataset.started = Math.round(performance.now() - start);
  if (!navigator.connection?.saveData && pythons.layouts.ready) pythons.sympy.preload();
}

begin();
