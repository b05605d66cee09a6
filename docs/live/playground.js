// The playground: what is typed is answered by Python, and kept in the address.
const $ = (id) => document.getElementById(id);
const fields = { expression: $("expression"), access: $("access"), lanes: $("lanes") };
let latest = 0;

function fromAddress() {
  const [expression, ...rest] = location.hash.slice(1).split("&");
  if (expression) fields.expression.value = decodeURIComponent(expression);
  const given = new URLSearchParams(rest.join("&"));
  for (const name of ["access", "lanes"]) {
    if (given.has(name)) fields[name].value = given.get(name);
  }
}

function toAddress() {
  const more = new URLSearchParams();
  for (const name of ["access", "lanes"]) if (fields[name].value) more.set(name, fields[name].value);
  const tail = more.size ? `&${more}` : "";
  history.replaceState(null, "", `#${encodeURIComponent(fields.expression.value)}${tail}`);
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
    document.body.dataset.ready = mine;
    if (seen.error) return;
    $("table").innerHTML = seen.html ?? "";
    $("value").textContent = seen.text;
    $("facts").textContent = seen.facts.join("\n");
    $("banks").textContent = seen.banks ?? "";
    for (const kind of ["svg", "latex"]) {
      $(kind).hidden = !seen[kind];
      $(kind).onclick = () => copy($(kind), seen[kind]);
    }
  } catch (error) {
    $("state").textContent = error.message;
  }
}

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  const name = button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = name), 1000);
}

async function begin() {
  const start = performance.now();
  fromAddress();
  addEventListener("hashchange", () => (fromAddress(), answer()));
  for (const field of Object.values(fields)) {
    field.addEventListener("input", () => (toAddress(), answer()));
  }
  for (const example of document.querySelectorAll("[data-example]")) {
    example.onclick = () => {
      fields.expression.value = example.textContent;
      toAddress();
      answer();
    };
  }
  await answer();
  document.body.dataset.started = Math.round(performance.now() - start);
}

begin();
