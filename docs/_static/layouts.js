// Pictures of layouts: the cell under the pointer, and all cells that belong to it. With the keyboard: Tab to a
// table, arrows from cell to cell, Escape. A cell with data-e stands for these elements, any other for its index.
// The events are those of the document, so that a picture may appear at any time.
"use strict";
(() => {
  const known = new WeakMap();  // picture → element → cells

  const size = (shape) => Array.isArray(shape) ? shape.reduce((n, mode) => n * size(mode), 1) : shape;

  // The coordinate of an index in a shape, leftmost fastest, as text.
  function coordinate(index, shape) {
    if (!Array.isArray(shape)) return `${index}`;
    const modes = shape.map((mode, k) => {
      const extent = size(mode), digit = k === shape.length - 1 ? index : index % extent;
      index = Math.floor(index / extent);
      return coordinate(digit, mode);
    });
    return `(${modes.join(",")})`;
  }

  // {shape, at, row, column, index} of a cell; index is undefined where cells have no coordinate.
  function placeOf(cell) {
    const panel = cell.closest(".panel").dataset;
    const shape = [JSON.parse(panel.shape)].flat(), at = JSON.parse(panel.at);
    const row = cell.parentElement.rowIndex - 1, column = cell.cellIndex - 1;
    if (shape.length === 0) return { row, column };
    if (shape.length === 1) return { row, column, shape, index: column };
    const [rows, columns, ...rest] = shape.map(size);
    let beyond = 0;
    for (let k = rest.length; k-- > 0;) beyond = beyond * rest[k] + at[k];
    return { row, column, shape, index: row + rows * (column + columns * beyond) };
  }

  function elementsOf(cell) {
    if (cell.dataset.e !== undefined) return cell.dataset.e.split(" ").filter(Boolean);
    const { index } = placeOf(cell);
    return index === undefined ? [] : [`${index}`];
  }

  function cellsByElement(picture) {
    if (!known.has(picture)) {
      const cells = new Map();
      for (const cell of picture.querySelectorAll("td")) {
        for (const element of elementsOf(cell)) {
          if (!cells.has(element)) cells.set(element, []);
          cells.get(element).push(cell);
        }
      }
      known.set(picture, cells);
    }
    return known.get(picture);
  }

  function read(cell) {
    const { row, column, shape, index } = placeOf(cell);
    const { counts } = cell.closest(".panel").dataset;
    const shown = cell.textContent && ` → ${counts.replace("{}", cell.textContent)}`;
    if (index === undefined) return `row ${row}, column ${column}${shown}`;
    const place = shape.length > 1 || Array.isArray(shape[0]) ? `${coordinate(index, shape)} · ` : "";
    return `${place}index ${index}${shown}`;
  }

  function clear(picture) {
    for (const cell of picture.querySelectorAll("td.on")) cell.classList.remove("on", "at");
    for (const line of picture.querySelectorAll(".read")) line.textContent = "";
  }

  function point(cell) {
    const picture = cell.closest(".layouts"), cells = cellsByElement(picture);
    clear(picture);
    const together = new Set([cell, ...elementsOf(cell).flatMap((element) => cells.get(element))]);
    const first = new Map();  // panel → [its first cell, how many]
    for (const other of together) {
      other.classList.add("on");
      const panel = other.closest(".panel");
      first.set(panel, [first.get(panel)?.[0] ?? other, (first.get(panel)?.[1] ?? 0) + 1]);
    }
    cell.classList.add("at");
    for (const [panel, [own, count]] of first) {
      panel.querySelector(".read").textContent = read(own) + (count > 1 ? `, +${count - 1} more` : "");
    }
  }

  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const cellOf = (event) => event.target.closest?.(".layouts .panel td");

  document.addEventListener("pointerover", (event) => {
    const cell = cellOf(event);
    if (cell) point(cell);
  });
  document.addEventListener("pointerout", (event) => {
    const picture = event.target.closest?.(".layouts");
    if (picture && event.pointerType === "mouse" && !picture.contains(event.relatedTarget)) clear(picture);
  });
  document.addEventListener("focusin", (event) => {
    const table = event.target.closest?.(".layouts .cells");
    if (table?.matches(":focus-visible")) point(table.querySelector("td.at") ?? table.querySelector("td"));
  });
  document.addEventListener("focusout", (event) => {
    const picture = event.target.closest?.(".layouts");
    if (picture) clear(picture);
  });
  document.addEventListener("keydown", (event) => {
    const table = event.target.closest?.(".layouts .cells");
    if (!table) return;
    if (event.key === "Escape") clear(table.closest(".layouts"));
    if (!(event.key in MOVES) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const at = table.querySelector("td.at") ?? table.querySelector("td"), [down, across] = MOVES[event.key];
    const next = table.rows[at.parentElement.rowIndex + down]?.cells[at.cellIndex + across];
    if (next?.tagName !== "TD") return;
    point(next);
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
})();
