// The playground: what is typed is answered by Python, and kept in the address.
const $ = (id) => document.getElementById(id);
const fields = { expression: $("expression"), access: $("access"), lanes: $("lanes") };
const first = fields.expression.value;  // whose table the page brings
let latest = 0;

function fromAddress() {
  const [expression, ...rest] = location.hash.slice(1).split("&");
  const given = new URLSearchParams(rest.join("&"));
  fields.expression.value = decoded(expression) || first;
  fields.lanes.value = given.get("lanes") ?? "";
  const access = given.get("access") ?? "";
  if (access && ![...fields.access.options].some((option) => option.value === access)) {
    fields.access.add(new Option(access));  // which Python says is none
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
  $("state").textContent ||= "Python starts …";
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

// What is shown is of an earlier expression: it is dimmed, and nothing of it can be copied.
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
  } else {  // plain http from another machine
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

// As chosen on the other pages; a browser may refuse to say.
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
