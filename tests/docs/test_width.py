"""A page fits its window: what is wider scrolls in a box of its own, or shrinks."""

import pytest

pytestmark = pytest.mark.slow  # a browser

#: Of each kind one: the home page, many pictures, wide code, wide tables, the reference.
PAGES = "index", "layouts", "epilogues", "wavefronts/README", "written/layouts/tensors"
BEYOND = """
const width = document.documentElement.clientWidth;
return document.documentElement.scrollWidth > width + 1
  ? [...document.querySelectorAll("body *")]
      .filter((each) => each.getBoundingClientRect().right > width + 1)
      .map((each) => each.tagName + "." + each.className).slice(0, 9)
  : [];
"""


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways(chromium, site, page):
    chromium.get(f"{site}/{page}.html")
    for width in 400, 800, 1280, 1340:  # a telephone, one column, two columns, three columns
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert chromium.execute_script(BEYOND) == [], f"{page} at {width} pixels"


@pytest.mark.parametrize("page", ["index", "written/ladder", "coming-from"])
def test_tables_of_a_few_columns_fit_a_telephone(chromium, site, page):
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.get(f"{site}/{page}.html")
    tables = "[...document.querySelectorAll('.table-wrapper')]"
    beyond = f"return {tables}.map(table => table.scrollWidth - table.clientWidth)"
    found = chromium.execute_script(beyond)
    assert found
    assert max(found) <= 1
