// The columns of a table as rows, each with what a person can change; see __init__.py beside this file.
// A text of the table is only ever set as text: never as HTML, nor as an attribute that a browser would follow.
const ROLES = [
  ["baseline", "Known", "k"],
  ["acquirable", "To measure", "m"],
  ["ignored", "Ignore", "i"],
];
const WORDS = { baseline: "known at the start", acquirable: "can be measured", ignored: "ignored" };
const AT_FIRST = 40; // rows; more are drawn when asked for, or found by a search
const SVG = "http://www.w3.org/2000/svg";

export default function ({ data, parentElement, setStateValue }) {
  let list = parentElement.columnRows;
  if (!list || list.key !== data.key) {
    list?.root.remove();
    list = parentElement.columnRows = new ColumnRows(data.key);
    parentElement.append(list.root);
  }
  list.send = (edits) => setStateValue("edits", edits);
  list.take(data.rows);
}

class ColumnRows {
  constructor(key) {
    this.key = key;
    this.name = `columns-${Math.random().toString(36).slice(2)}`;
    this.edits = {};
    this.drawn = new Map(); // id → the row's elements
    this.picked = new Set();
    this.filter = "all";
    this.most = AT_FIRST;
    this.root = make("div", "l2m-columns");
    this.bar = this.makeBar();
    this.list = make("ul", "rows");
    this.more = make("button", "more");
    this.more.type = "button";
    this.more.onclick = () => {
      this.most = Infinity;
      this.arrange();
    };
    this.root.append(this.bar, this.list, this.more);
    this.root.addEventListener("keydown", (event) => this.onKey(event));
  }

  // -- what the server says ------------------------------------------------------------------------------------------

  take(rows) {
    this.rows = rows;
    for (const row of rows) {
      if (this.drawn.has(row.id)) this.fill(row);
    }
    this.arrange();
  }

  of(row) {
    return { role: row.role, kind: row.kind, unit: row.unit, ...this.edits[row.id] };
  }

  // -- what the person does ------------------------------------------------------------------------------------------

  change(ids, setting, value) {
    for (const id of ids) {
      const row = this.rows.find((row) => row.id === id);
      if (!row || (setting === "role" && row.fixed)) continue;
      this.edits = { ...this.edits, [id]: { ...this.edits[id], [setting]: value } };
      if (this.drawn.has(id)) this.fill(row);
    }
    this.count();
    this.send(this.edits);
  }

  // k, m and i: only while a row, not a text, has the focus.
  onKey(event) {
    const role = ROLES.find(([, , key]) => key === event.key.toLowerCase());
    const row = event.target.closest("li[data-id]");
    const writes = event.target.matches("select, input:not([type=radio]):not([type=checkbox])");
    if (!role || !row || writes || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const id = row.dataset.id;
    this.change(this.picked.has(id) ? [...this.picked] : [id], "role", role[0]);
    // As arrow keys do: a focus left on the role before would show, and tell who listens, a choice that is no more.
    if (event.target.type === "radio") this.drawn.get(id).roles[role[0]].focus();
  }

  pick(ids, on) {
    for (const id of ids) {
      this.picked[on ? "add" : "delete"](id);
      const parts = this.drawn.get(id);
      if (parts) parts.pick.checked = on;
    }
    this.count();
  }

  // -- which rows are shown ------------------------------------------------------------------------------------------

  matching() {
    const words = this.search.value.trim().toLowerCase();
    return this.rows.filter((row) => {
      if (words && !`${row.name} ${row.reason} ${row.unit}`.toLowerCase().includes(words)) return false;
      if (this.filter === "all") return true;
      return this.filter === "look" ? row.look : this.of(row).role === this.filter;
    });
  }

  arrange() {
    const matching = this.matching();
    const shown = matching.slice(0, this.most);
    const ids = new Set(shown.map((row) => row.id));
    for (const row of shown) {
      if (!this.drawn.has(row.id)) {
        this.drawn.set(row.id, this.makeRow(row));
        this.fill(row);
      }
    }
    for (const [id, parts] of this.drawn) {
      if (!ids.has(id)) parts.row.remove();
    }
    // Rows that stay where they are keep the focus.
    shown.forEach((row, place) => {
      const element = this.drawn.get(row.id).row;
      if (this.list.children[place] !== element) this.list.insertBefore(element, this.list.children[place] ?? null);
    });
    const left = matching.length - shown.length;
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${left} more columns`;
    this.count();
  }

  count() {
    const numbers = { all: this.rows.length, look: 0, baseline: 0, acquirable: 0, ignored: 0 };
    for (const row of this.rows) {
      numbers[this.of(row).role] += 1;
      numbers.look += row.look ? 1 : 0;
    }
    for (const [value, { label, input, words }] of Object.entries(this.filters)) {
      label.textContent = `${words} ${numbers[value]}`;
      input.parentElement.hidden = value === "look" && !numbers.look;
    }
    const matching = this.matching();
    this.all.checked = matching.length > 0 && matching.every((row) => this.picked.has(row.id));
    this.together.hidden = this.picked.size === 0;
    this.selected.textContent = `${this.picked.size} selected:`;
  }

  // -- elements ------------------------------------------------------------------------------------------------------

  makeBar() {
    const bar = make("div", "bar");
    this.search = make("input", "search");
    this.search.type = "search";
    this.search.placeholder = "Search columns";
    this.search.setAttribute("aria-label", "Search columns");
    this.search.oninput = () => this.arrange();
    const chips = make("div", "chips");
    chips.setAttribute("role", "radiogroup");
    chips.setAttribute("aria-label", "Show");
    this.filters = {};
    const kinds = [["all", "All"], ["look", "Look here"], ...ROLES.map(([role, words]) => [role, words])];
    for (const [value, words] of kinds) {
      const [chip, input, label] = radio(`${this.name}-filter`, value, words);
      input.checked = value === "all";
      input.onchange = () => {
        this.filter = value;
        this.arrange();
      };
      this.filters[value] = { label, input, words };
      chips.append(chip);
    }
    const everything = make("label", "everything");
    this.all = make("input");
    this.all.type = "checkbox";
    this.all.onchange = () => this.pick(this.matching().map((row) => row.id), this.all.checked);
    everything.append(this.all, document.createTextNode("Select all shown"));
    this.together = make("div", "together");
    this.selected = make("span");
    this.together.append(this.selected);
    for (const [role, words] of ROLES) {
      const button = make("button");
      button.type = "button";
      button.textContent = words;
      button.onclick = () => this.change([...this.picked], "role", role);
      this.together.append(button);
    }
    bar.append(this.search, chips, everything, this.together);
    return bar;
  }

  makeRow({ id, name }) {
    const row = make("li");
    row.dataset.id = id;
    const parts = { row };
    parts.pick = make("input", "pick");
    parts.pick.type = "checkbox";
    parts.pick.checked = this.picked.has(id);
    parts.pick.setAttribute("aria-label", `Select ${name}`);
    parts.pick.onchange = () => this.pick([id], parts.pick.checked);
    const what = make("div", "what");
    parts.name = make("span", "name");
    parts.spread = make("span", "about");
    parts.examples = make("span", "about");
    what.append(parts.name, parts.spread, parts.examples);
    parts.chart = document.createElementNS(SVG, "svg");
    parts.recorded = make("span", "recorded");
    const settings = make("div", "settings");
    parts.kind = make("select");
    parts.kind.setAttribute("aria-label", `Kind of ${name}`);
    parts.kind.onchange = () => this.change([id], "kind", parts.kind.value);
    parts.unit = make("input", "unit");
    parts.unit.type = "text";
    parts.unit.maxLength = 40;
    parts.unit.placeholder = "unit";
    parts.unit.setAttribute("aria-label", `Unit of ${name}`);
    parts.unit.onchange = () => this.change([id], "unit", parts.unit.value.trim());
    settings.append(parts.kind, parts.unit);
    const roles = make("div", "roles");
    roles.setAttribute("role", "radiogroup");
    roles.setAttribute("aria-label", `Role of ${name}`);
    parts.roles = {};
    for (const [role, words, key] of ROLES) {
      const [choice, input] = radio(`${this.name}-${id}`, role, words);
      choice.title = `${WORDS[role]} (key ${key.toUpperCase()})`;
      input.onchange = () => this.change([id], "role", role);
      parts.roles[role] = input;
      roles.append(choice);
    }
    parts.reason = make("span", "reason");
    row.append(parts.pick, what, parts.chart, parts.recorded, settings, roles, parts.reason);
    return parts;
  }

  fill(row) {
    const parts = this.drawn.get(row.id);
    const now = this.of(row);
    parts.row.dataset.role = now.role;
    parts.row.classList.toggle("look", row.look);
    say(parts.name, row.name);
    say(parts.spread, row.spread);
    say(parts.examples, row.examples);
    say(parts.recorded, row.recorded);
    const reason = now.role === row.guess ? row.reason : "your choice";
    say(parts.reason, now.role === "ignored" ? reason : row.problem || reason);
    draw(parts.chart, row.bars, row.kind === "number", row.chart);
    if (parts.kind.children.length !== row.kinds.length) {
      parts.kind.replaceChildren(...row.kinds.map((kind) => new Option(kind)));
    }
    parts.kind.value = now.kind;
    parts.unit.hidden = now.kind !== "number";
    if (document.activeElement !== parts.unit) parts.unit.value = now.unit;
    for (const [role, input] of Object.entries(parts.roles)) {
      input.checked = role === now.role;
      input.disabled = row.fixed && role !== row.role;
    }
  }
}

function make(tag, style) {
  const element = document.createElement(tag);
  if (style) element.className = style;
  return element;
}

function radio(name, value, words) {
  const choice = make("label");
  const input = make("input");
  input.type = "radio";
  input.name = name;
  input.value = value;
  const label = make("span");
  label.textContent = words;
  choice.append(input, label);
  return [choice, input, label];
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Bars of a number touch, those of levels stand apart.
function draw(chart, bars, together, words) {
  const wanted = `${together} ${bars}`;
  if (chart.dataset.drawn === wanted) return;
  chart.dataset.drawn = wanted;
  chart.setAttribute("viewBox", "0 0 96 28");
  chart.setAttribute("preserveAspectRatio", "none");
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", words);
  const most = Math.max(1, ...bars);
  const width = 96 / Math.max(bars.length, together ? 1 : 3);
  chart.replaceChildren(
    ...bars.map((count, place) => {
      const bar = document.createElementNS(SVG, "rect");
      const height = count ? Math.max(1, (27 * count) / most) : 0;
      bar.setAttribute("x", place * width);
      bar.setAttribute("width", together ? width * 0.94 : width * 0.7);
      bar.setAttribute("y", 28 - height);
      bar.setAttribute("height", height);
      return bar;
    }),
  );
}
