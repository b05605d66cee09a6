"""Pointing at a cell of a picture, in a real browser: what belongs to it lights up."""

import pytest

pytestmark = pytest.mark.slow  # a browser

POINT = """
const picture = [...document.querySelectorAll("figure.layout")]
  .find((figure) => figure.querySelector("code").textContent === arguments[0]);
const cell = picture.querySelectorAll(".panel")[arguments[1]].querySelectorAll("td")[arguments[2]];
cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
return [...picture.querySelectorAll(".panel")].map((panel) => [
  [...panel.querySelectorAll("td.on")].map((cell) => cell.textContent),
  panel.querySelector(".read").textContent,
]);
"""
PLACES = """
return [...document.querySelectorAll("figure.layout td")].map((cell) => {
  const { x, y } = cell.getBoundingClientRect();
  return [x, y + scrollY];
});
"""
LEAVE = """
const cell = document.querySelector("td.at");
cell.dispatchEvent(new PointerEvent("pointerout", { bubbles: true, pointerType: "mouse" }));
return document.querySelectorAll("td.on").length;
"""
FOCUS = """
const table = document.querySelector(".layouts .cells");
table.focus({ focusVisible: true });
return [...document.querySelectorAll("td.at")].map((cell) => cell.textContent);
"""
READ = "return document.querySelector('figure.layout .read').textContent"


@pytest.fixture(scope="module")
def page(chromium, site):
    """The page of the operations, open in a browser."""
    chromium.get(f"{site}/layouts.html")
    return chromium


@pytest.mark.parametrize(
    ("expression", "panel", "cell", "seen"),
    [
        (
            "composition((6,2):(8,2), (4,3):(3,1))",
            2,
            5,
            [
                (["40"], "(5,0) · index 5 → offset 40"),
                (["5"], "(1,2) · index 9 → index 5 of A"),
                (["40"], "((1,0),2) · index 9 → offset 40"),
            ],
        ),
        (
            "blocked_product((2,5):(5,1), (3,4):(1,3))",
            1,
            1,
            [
                ([str(n) for n in range(10)], "(0,0) · index 0 → offset 0, +9 more"),
                (["3"], "(0,1) · index 3 → offset 3"),
                (
                    [str(n) for n in range(30, 40)],
                    "((0,0),(0,1)) · index 30 → offset 30, +9 more",
                ),
            ],
        ),
        (
            "left_inverse((4,8):(1,5))",
            0,
            9,
            [
                (["6"], "(1,1) · index 5 → offset 6"),
                (["5"], "(1,1) · index 6 → index 5 of L"),
            ],
        ),
        (
            "logical_divide((4,2,3):(2,1,8), 4:2)",
            3,
            15,
            [
                ([], ""),
                (["11"], "(1,1,1) · index 13 → offset 11"),
                ([], ""),
                (["11"], "((0,1),(1,1)) · index 14 → offset 11"),
            ],
        ),
        (
            "coalesce((2,(1,6)):(1,(6,2)))",
            1,
            3,
            [
                (["3"], "(1,(0,1)) · index 3 → offset 3"),
                (["3"], "index 3 → offset 3"),
            ],
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_cells_that_belong_together_light_up_and_are_read_out(page, expression, panel, cell, seen):
    found = page.execute_script(POINT, expression, panel, cell)
    assert [(lit, read) for lit, read in found] == seen
    assert page.execute_script(LEAVE) == 0


@pytest.mark.parametrize(
    "expression", ["composition((6,2):(8,2), (4,3):(3,1))", "logical_divide((4,2,3):(2,1,8), 4:2)"]
)
def test_no_cell_moves_when_another_is_pointed_at(page, expression):
    places = page.execute_script(PLACES)
    page.execute_script(POINT, expression, 0, 0)
    assert page.execute_script(PLACES) == places
    page.execute_script(LEAVE)


def test_all_that_a_thread_holds_lights_up(page):
    found = page.execute_script(POINT, 'mma("m16n8k16", "bf16")', 2, 0)
    assert [len(lit) for lit, _ in found] == [8, 4, 4]
    assert all(words.startswith("T0 ") for lit, _ in found for words in lit)
    assert found[2][1] == "(0,0) · index 0 → T0 V0, +3 more"
    page.execute_script(LEAVE)


def test_arrow_keys_go_from_cell_to_cell(page):
    from selenium.webdriver.common.keys import Keys

    assert page.execute_script(FOCUS) == ["0"]
    table = page.switch_to.active_element
    table.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)  # the last is the edge
    assert page.execute_script(READ) == "(1,(0,1)) · index 3 → offset 3"
    table.send_keys(Keys.ESCAPE)
    assert page.execute_script(READ) == ""
