// The playground: Python answers what is typed, and the address keeps it.
const $ = (id) => document.getElementById(id);
const fields = { expression: $("expression"), access: $("access"), lanes: $("lanes") };
const first = fields.expression.value;  // its table is part of the page
let latest = 0;

function fromAddress() {
  const [expression, ...rest] = location.hash.slice(1).split("&");
  const given = new URLSearchParams(rest.join("&"));
  fields.expression.value = decoded(expression) || first;
  fields.lanes.value = given.get("lanes") ?? "";
  const access = given.get("access") ?? "";
  if (access && ![...fields.access.options].some((option) => option.value === access)) {
    fields.access.add(new Option(access));  // unknown; Python's answer says so
  }
  fields.access.value = access;
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
  for (const name of ["access", "lanes"]) if (fields[name].value) more.set(name, fields[name].value);
  const tail = more.size ? `&${more}` : "";
  history[put](null, "", `#${encodeURIComponent(fields.expression.value)}${tail}`);
}

async function answer() {
  const mine = ++latest;
  $("state").textContent ||= "Starting Python …";
  try {
    const { expression, access, lanes } = fields;
    const seen = await ask("show", expression.value, access.value, lanes.value);
    if (mine !== latest) return;
    $("state").textContent = "";
    $("error").textContent = seen.error ?? "";
    stale(Boolean(seen.error));
    document.body.dataset.ready = mine;
    if (!seen.error) show(seen);
  } catch (error) {
    if (mine !== latest) return;
    $("state").textContent = error.message;
    $("error").textContent = "";
    stale(fields.expression.value !== first);
    document.body.dataset.ready = mine;
  }
}

// Dims an answer to an earlier expression, and disables its buttons.
function stale(is) {
  $("answer").dataset.stale = $("answer").inert = is;
}

function show(seen) {
  $("table").innerHTML = seen.html ?? "";
  $("value").textContent = seen.text;
  $("facts").textContent = seen.facts.join("\n");
  $("banks").textContent = seen.banks ?? "";
  for (const kind of ["svg", "latex"]) {
    $(kind).hidden = !seen[kind];
    $(kind).onclick = () => copy($(kind), seen[kind]);
  }
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

// The theme chosen on the other pages; a browser may deny access to it.
function followTheme() {
  try {
    document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "auto";
  } catch {}
}

async function begin() {
  const start = performance.now();
  followTheme();
  fromAddress();
  stale(fields.expression.value !== first);
  addEventListener("hashchange", () => (fromAddress(), answer()));
  for (const field of Object.values(fields)) {
    field.addEventListener("input", () => (toAddress(), answer()));
  }
  for (const example of document.querySelectorAll("[data-example]")) {
    example.onclick = () => {
      fields.expression.value = example.textContent;
      toAddress("pushState");
      answer();
    };
  }
  await answer();
  document.body.dataset.started = Math.round(performance.now() - start);
}

begin();
