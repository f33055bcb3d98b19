"use strict";

// Numbers by value, words as a reader orders them; what is empty comes last in either direction.
const words = new Intl.Collator(undefined, { numeric: true });

function key(row, column) {
  const cell = row.cells[column];
  return (cell.dataset.key ?? cell.textContent).trim();
}

function compare(a, b, number, turn) {
  if (a === "" || b === "") return (a === "") - (b === "");
  if (!number) return turn * words.compare(a, b);
  const [x, y] = [Number(a), Number(b)];
  return x === y ? 0 : turn * (x < y ? -1 : 1);
}

function sort(table, head) {
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.indexOf(head);
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const number = head.classList.contains("number");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compare(key(a, column), key(b, column), number, up ? 1 : -1));
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () => sort(table, head));
  }
}
