"""The live pages in a real browser show what Python answers."""

import json
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # a browser

ROOT = Path(__file__).parents[2]
PYODIDE = ROOT / "docs" / "node_modules" / "pyodide"
PATIENCE = 60  # seconds: Python in a browser takes about one to start
# An endless question is stopped after two seconds instead of ten (LIMIT in live.js), and sympy is
# loaded for symbols alone, as for readers who save data.
SCRIPT = """
const real = window.setTimeout;
window.setTimeout = (call, after, ...rest) => real(call, after > 9_000 ? 2_000 : after, ...rest);
Object.defineProperty(navigator, "connection", { value: { saveData: true } });
"""

sys.path.insert(0, str(ROOT / "docs" / "live"))
import answer  # noqa: E402

import layouts  # noqa: E402

EXPRESSIONS = (
    "(4,8):(8,1)",
    "S<3,3,3> o 0 o (8,64):(64,1)",
    "logical_divide((8,8):(8,1), <4:1,2:1>)",
    "compare(naive=(8,64):(64,1), padded=(8,64):(72,1))",
    "complement((2,2):(1,6), 24)",
    "Swizzle(3,3,3)(64)",
    "(4,8):(7,1)",
)


@pytest.fixture(scope="module")
def browser(chromium):
    if not PYODIDE.is_dir():
        pytest.skip("Pyodide is not there: npm ci --prefix docs")
    chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SCRIPT})
    return chromium


def wait(browser, script, *arguments):
    """The value of a script as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := browser.execute_script(script, *arguments):
            return found
        time.sleep(0.05)
    state = browser.execute_script("return document.body.innerText")
    raise AssertionError(f"{script}: not within {PATIENCE} s; the page says {state[:500]}")


def opened(browser, site, page):
    browser.get("about:blank")
    browser.get(f"{site}/{page}")
    wait(browser, "return document.body.dataset.started")


def running(browser, site):
    """A playground whose Python runs: the page that is open, if it is one."""
    if browser.current_url.startswith(f"{site}/playground.html"):
        wait(browser, "return document.body.dataset.started")
    else:
        opened(browser, site, "playground.html")


TYPE = """
const [id, text] = arguments, field = document.getElementById(id);
document.body.dataset.ready = "";
field.value = text;
field.dispatchEvent(new Event("input"));
"""
CELLS = "return [...document.querySelectorAll('#table td')].map(cell => cell.textContent)"


def typed(browser, field, text):
    browser.execute_script(TYPE, field, text)
    wait(browser, "return document.body.dataset.ready")


FACTS = """
return [...document.querySelectorAll('#facts pre, #facts summary')].map(part => part.textContent)
"""


def test_the_playground_shows_python_s_answer(browser, site):
    opened(browser, site, "playground.html")
    for expression in EXPRESSIONS:
        typed(browser, "expression", expression)
        expected = json.loads(answer.show(expression))
        text = browser.execute_script(VALUE)
        facts = "\n".join(browser.execute_script(FACTS))
        assert "error" not in expected
        assert (text, facts) == (expected["text"], "\n".join(expected["facts"]))
        shown = browser.execute_script("return document.getElementById('table').innerHTML")
        there = browser.execute_script(
            "const made = document.createElement('div'); made.innerHTML = arguments[0];"
            "return made.innerHTML",
            expected.get("html", ""),
        )
        assert shown == there
    assert browser.execute_script(CELLS) is not None


def test_the_access_is_counted(browser, site):
    opened(browser, site, "playground.html#" + "(64%2C64)%3A(64%2C1)&access=ldmatrix.x4")
    expected = json.loads(answer.show("(64,64):(64,1)", "ldmatrix.x4"))["banks"]
    assert "32 wavefronts" in expected
    assert browser.execute_script("return document.getElementById('banks').textContent") == expected


def test_the_address_keeps_the_expression(browser, site):
    running(browser, site)
    typed(browser, "expression", "composition((4,8):(8,1), (4,2):(2,16))")
    address = browser.current_url
    opened(browser, site, address.removeprefix(site + "/"))
    value = browser.execute_script("return document.getElementById('expression').value")
    assert value == "composition((4,8):(8,1), (4,2):(2,16))"


@pytest.mark.parametrize("name", ["layouts", "sympy"])
def test_python_starts_from_its_snapshot(browser, site, name):
    """From the beginning, it would take six times as long."""
    running(browser, site)
    browser.execute_script(f"pythons.{name}.preload()")
    assert wait(browser, f"return pythons.{name}.ready")["isRestored"]


@pytest.mark.deep
def test_python_starts_without_a_snapshot(browser, site_without_snapshots):
    opened(browser, site_without_snapshots, "playground.html")
    assert wait(browser, "return pythons.layouts.ready") == {"isRestored": False}
    typed(browser, "expression", "size((4,8):(8,1))")
    assert browser.execute_script(VALUE) == "32"


VALUE = "return document.getElementById('value').textContent"


def test_symbols_are_answered_too(browser, site):
    running(browser, site)
    for expression in ("4/2:1", "prove(SwizzleInvolution(S<3,4,3>))", "size((m,4):(4,1))"):
        typed(browser, "expression", expression)
        assert browser.execute_script(VALUE) == json.loads(answer.show(expression))["text"]


ENDLESS = "table((9999,9999):(9999,1), limit=None)"


def test_a_question_after_an_endless_one_is_answered(browser, site):
    running(browser, site)
    browser.execute_script(TYPE, "expression", ENDLESS)
    wait(browser, "return pythons.layouts.running")
    browser.execute_script(TYPE, "expression", "(4,8):(8,1)")
    wait(browser, f"{VALUE} === '(4,8):(8,1)'")
    assert browser.execute_script("return document.getElementById('state').textContent") == ""


def test_symbols_are_answered_while_sympy_loads(browser, site):
    opened(browser, site, "playground.html")
    for expression in ("(m,4):(4,1)", "(8*n,4):(4,1)"):
        browser.execute_script(TYPE, "expression", expression)
    wait(browser, f"{VALUE} === '(8*n,4):(4,1)'")


def test_an_endless_question_is_stopped_and_the_next_is_answered(browser, site):
    running(browser, site)
    typed(browser, "expression", ENDLESS)
    state = browser.execute_script("return document.getElementById('state').textContent")
    assert "Python was stopped" in state
    typed(browser, "expression", "(4,8):(8,1)")
    assert browser.execute_script(CELLS)[:2] == ["0", "1"]


def keys(browser, *pressed):
    """Presses keys in the field of the expression, which is empty before."""
    from selenium.webdriver.common.by import By

    field = browser.find_element(By.ID, "expression")
    field.clear()
    field.send_keys(*pressed)
    return field


NAMES = "return [...document.querySelectorAll('#names li')].map(item => item.dataset.name)"


def test_a_name_is_completed_and_its_call_explained(browser, site):
    from selenium.webdriver.common.keys import Keys

    running(browser, site)
    field = keys(browser, "logical_d")
    assert browser.execute_script(NAMES)[0] == "logical_divide"
    field.send_keys(Keys.TAB)
    assert field.get_attribute("value") == "logical_divide("
    hint = wait(browser, "return document.getElementById('hint').textContent")
    assert hint.startswith("logical_divide(")
    field.send_keys("12:1, 4:1)")
    wait(browser, f"{VALUE} === '(4,3):(1,4)'")


def test_an_instruction_in_quotation_marks_is_completed(browser, site):
    running(browser, site)
    keys(browser, 'banks((8,64):(64,1), "ldm')
    assert set(browser.execute_script(NAMES)) <= set(layouts.INSTRUCTIONS)
    assert "ldmatrix.x4" in browser.execute_script(NAMES)


def test_an_unfinished_name_is_not_asked_at_once(browser, site):
    running(browser, site)
    typed(browser, "expression", "(4,8):(8,1)")
    keys(browser, "comp")
    time.sleep(0.3)
    assert browser.execute_script("return document.getElementById('error').textContent") == ""
    assert browser.execute_script(VALUE) == "(4,8):(8,1)"


def test_an_operation_shows_its_steps(browser, site):
    running(browser, site)
    typed(browser, "expression", "composition((6,2):(8,2), (4,3):(3,1))")
    steps = json.loads(answer.steps("composition((6,2):(8,2), (4,3):(3,1))"))["text"]
    shown = "return document.querySelector('#steps pre').textContent"
    wait(browser, f"{shown} === {json.dumps(steps)}")


def test_steps_that_are_asked_for_stand_above_their_picture(browser, site):
    running(browser, site)
    typed(browser, "expression", "explain(composition, (6,2):(8,2), (4,3):(3,1))")
    at = "return document.getElementById('{}').getBoundingClientRect().{}"
    end, begin = at.format("value", "bottom"), at.format("table", "top")
    assert browser.execute_script(end) <= browser.execute_script(begin)


def test_the_width_of_an_element_is_asked_and_kept(browser, site):
    opened(browser, site, "playground.html#(4%2C8)%3A(8%2C1)&unit=32")
    legend = "return document.querySelector('#table .legend').textContent"
    assert "32 bits" in browser.execute_script(legend)
    typed(browser, "unit", "64")
    assert "64 bits" in browser.execute_script(legend)
    assert browser.current_url.endswith("&unit=64")


def test_the_list_of_operations_is_filtered(browser, site):
    running(browser, site)
    browser.execute_script(
        "const field = document.getElementById('filter'); field.value = 'blocked_product';"
        "field.dispatchEvent(new Event('input'))"
    )
    left = browser.execute_script(
        "return [...document.querySelectorAll('[data-operation]:not([hidden])')]"
        ".map(item => item.dataset.operation)"
    )
    assert "blocked_product" in left
    assert len(left) < 5


def test_the_open_list_of_operations_leaves_room_for_the_answer(browser, site):
    running(browser, site)
    height = (
        "document.getElementById('operations').open = true;"
        "return document.getElementById('operations').offsetHeight / innerHeight"
    )
    assert browser.execute_script(height) <= 0.6


def test_an_outdated_answer_is_dimmed(browser, site):
    running(browser, site)
    typed(browser, "expression", "(4,8):(8,1)")
    stale = "return document.getElementById('answer').dataset.stale"
    assert browser.execute_script(stale) == "false"
    typed(browser, "expression", "(4,8")
    assert browser.execute_script(stale) == "true"
    assert browser.execute_script("return document.getElementById('answer').inert")


@pytest.mark.parametrize("address", ["%E0%A4%A", "(8,8):(8,1)&access=none", "&access=ldmatrix.x1"])
def test_the_page_works_after_a_wrong_address(browser, site, address):
    opened(browser, site, f"playground.html#{address}")
    typed(browser, "expression", "(2,2):(2,1)")
    assert browser.execute_script(CELLS) == ["0", "1", "2", "3"]


def test_back_goes_to_the_example_before(browser, site):
    running(browser, site)
    value = "return document.getElementById('expression').value"
    first = browser.execute_script(value)
    browser.execute_script("document.querySelector('[data-example]').click()")
    assert browser.execute_script(value) != first
    browser.back()
    wait(browser, f"return document.getElementById('expression').value === {json.dumps(first)}")


def test_an_error_has_a_message_with_its_place(browser, site):
    running(browser, site)
    typed(browser, "expression", "composition((4,8):(8,1), )")
    said = browser.execute_script("return document.getElementById('error').textContent")
    assert said == json.loads(answer.show("composition((4,8):(8,1), )"))["error"]
    assert "^" in said


@pytest.mark.parametrize("page", ["playground.html", "start.html", "swizzles.html", "puzzles.html"])
def test_a_phone_needs_no_sideways_scroll(browser, site, page):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        browser.get(f"{site}/{page}")
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_playground_follows_the_theme(browser, site):
    for theme, paper in (("dark", "rgb(19, 20, 22)"), ("light", "rgb(255, 255, 255)")):
        browser.get(f"{site}/index.html")
        browser.execute_script("localStorage.setItem('theme', arguments[0])", theme)
        browser.get(f"{site}/playground.html")
        seen = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert seen == paper
    browser.execute_script("localStorage.removeItem('theme')")


def test_puzzles_are_judged(browser, site):
    browser.get(f"{site}/puzzles.html")
    enter = """
    const input = document.querySelector(".puzzle input");
    input.value = arguments[0];
    input.dispatchEvent(new Event("input"));
    """
    verdict = "return document.querySelector('.puzzle').dataset.right"
    for expression, right in (("(4,8):(1,4)", "false"), ("(4,8):(8,1)", "true")):
        browser.execute_script(enter, expression)
        wait(browser, f"{verdict} === '{right}'")
        drawn = browser.execute_script("return document.querySelector('.puzzle .drawn').innerText")
        assert expression in drawn


def test_a_page_opened_as_a_file_says_how_to_serve_it(browser, folder):
    browser.get(f"file://{folder}/playground.html")
    said = "return document.getElementById('state').textContent"
    wait(browser, f"{said}.includes('python -m http.server')")
    assert browser.execute_script(CELLS)[:3]  # the table from the build
    stale = "return document.getElementById('answer').dataset.stale"
    assert browser.execute_script(stale) == "false"
    browser.get("about:blank")
    browser.get(f"file://{folder}/playground.html#(4,8):(8,1)")  # another expression
    wait(browser, f"{said}.includes('python -m http.server')")
    assert browser.execute_script(stale) == "true"
