"use strict";
// The ledger: filters and sorting. Diffs: two columns where there is room. Only texts are set, never markup.
(() => {
  const table = document.getElementById("kernels");
  const form = document.querySelector(".controls");

  function make(name, className, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  if (table && form) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const text = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

    function filter() {
      const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = ["disposition", "style", "verified"].every(
          (name) => !form.elements[name].value || form.elements[name].value === row.dataset[name]);
        row.hidden = !(fits && words.every((word) => text.get(row).includes(word)));
        shown += !row.hidden;
      }
      form.elements.count.value = `${shown} of ${rows.length} kernels shown`;
    }

    function key(row, column) {
      const cell = row.cells[column];
      return cell.dataset.key ?? cell.textContent.toLowerCase();
    }

    function sort(column) {
      const descending = heads[column].getAttribute("aria-sort") === "ascending";
      const order = new Intl.Collator("en", { numeric: true });
      const keyed = [...body.rows].map((row) => [key(row, column), row]);
      keyed.sort((a, b) => order.compare(a[0], b[0]) * (descending ? -1 : 1));
      body.append(...keyed.map((pair) => pair[1]));
      heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : descending ? "descending" : "ascending"));
    }

    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => sort(column)));
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    filter();
  }

  // A link leads to a closed element: open it, and put the focus there.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.firstElementChild.focus({ preventScroll: true });
      target.scrollIntoView();
    }
  }
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest ? event.target.closest('a[href^="#"]') : null;
    if (link && link.hash === location.hash) reveal();
  });

  const words = (line) => line.match(/\w+|\s+|[^\w\s]/g) ?? [];
  const weight = (word) => word.trim().length;

  // How much two lines have in common, from every pair of places on: the longest common run of words, by letters.
  function common(a, b) {
    const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        best[i][j] = a[i] === b[j]
          ? Math.max(best[i + 1][j + 1] + weight(a[i]), best[i + 1][j], best[i][j + 1])
          : Math.max(best[i + 1][j], best[i][j + 1]);
      }
    }
    return best;
  }

  // For each word of both lines: is it in the other line too?
  function kept(a, b) {
    const best = common(a, b);
    const old = a.map(() => false);
    const fresh = b.map(() => false);
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i] === b[j] && best[i][j] === best[i + 1][j + 1] + weight(a[i])) old[i++] = fresh[j++] = true;
      else if (best[i][j] === best[i + 1][j]) i++;
      else j++;
    }
    return [old, fresh];
  }

  // Which removed line became which added line: in order, and as much alike as can be. Pairs of indices, or undefined.
  function* pairs(removed, added) {
    const a = removed.map(words);
    const b = added.map(words);
    const small = a.length * b.length <= 10000;
    const score = (i, j) => {
      const same = common(a[i], b[j])[0][0];
      return same >= 0.45 * Math.max(weight(removed[i]), weight(added[j])) ? same : 0;
    };
    const scores = small ? a.map((_, i) => b.map((_, j) => score(i, j))) : [];
    const best = Array.from({ length: a.length + 1 }, () => new Float64Array(b.length + 1));
    for (let i = a.length - 1; small && i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        const here = scores[i][j] ? best[i + 1][j + 1] + scores[i][j] : 0;
        best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], here);
      }
    }
    let left = [];
    let right = [];
    function* unpaired() {
      for (let k = 0; k < Math.max(left.length, right.length); k++) yield [left[k], right[k], []];
      left = [];
      right = [];
    }
    let i = 0;
    let j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && small && scores[i][j] && best[i][j] === best[i + 1][j + 1] + scores[i][j]) {
        yield* unpaired();
        yield [i, j, kept(a[i++], b[j++])];
      } else if (j === b.length || (i < a.length && best[i][j] === best[i + 1][j])) left.push(i++);
      else right.push(j++);
    }
    yield* unpaired();
  }

  function textCell(row, kind, sign, line, same) {
    const cell = make("td", kind);
    if (line !== undefined) cell.append(sign);
    if (line !== undefined && !same) cell.append(line);
    else if (line !== undefined) {
      const parts = words(line);
      for (let k = 0; k < parts.length;) {
        let end = k + 1;
        while (end < parts.length && same[end] === same[k]) end++;
        const text = parts.slice(k, end).join("");
        const blank = text.slice(text.trimEnd().length);
        cell.append(...(same[k] || !text.trim() ? [text] : [make("mark", "", text.trimEnd()), blank]));
        k = end;
      }
    }
    row.append(cell);
  }

  function numberCell(row, kind, number) {
    row.append(make("td", `number ${kind}`, number));
  }

  // Runs of a hunk: equal lines, or the removed and added lines that stand for each other.
  function* runs(lines) {
    let removed = [];
    let added = [];
    for (const line of [...lines, " "]) {
      if (line[0] === "-") removed.push(line.slice(1));
      else if (line[0] === "+") added.push(line.slice(1));
      else if (line[0] === " ") {
        if (removed.length || added.length) yield { removed, added };
        removed = [];
        added = [];
        yield { same: line.slice(1) };
      }
    }
  }

  function headRow(table, titles) {
    const row = make("tr");
    for (const title of titles) {
      const cell = make("th");
      cell.scope = "col";
      cell.append(make("span", "hidden", title));
      row.append(cell);
    }
    const head = make("thead", "hidden");
    head.append(row);
    table.append(head);
  }

  // The reasons of a line stand below it, and no longer in the list.
  function explain(body, line, reasons, columns) {
    const own = reasons.get(line);
    if (!own) return;
    reasons.delete(line);
    const row = body.insertRow();
    row.className = "why";
    const cell = row.insertCell();
    cell.colSpan = columns;
    for (const item of own) {
      const text = make("div");
      text.append(...[...item.childNodes].slice(1).map((node) => node.cloneNode(true)));
      cell.append(text);
      item.hidden = true;
    }
  }

  function changed(body, removed, added, wide, at, reasons) {
    const shown = (i) => i !== undefined && explain(body, at.old + i, reasons, wide ? 4 : 2);
    function old(row, i, same) {
      numberCell(row, i === undefined ? "" : "old", i === undefined ? "" : at.old + i);
      textCell(row, i === undefined ? "" : "old", "− ", removed[i], same);
    }
    function fresh(row, j, same) {
      numberCell(row, j === undefined ? "" : "new", j === undefined ? "" : at.new + j);
      textCell(row, j === undefined ? "" : "new", "+ ", added[j], same);
    }
    if (wide) {
      for (const [i, j, [before, after]] of pairs(removed, added)) {
        const row = body.insertRow();
        old(row, i, before);
        fresh(row, j, after);
        shown(i);
      }
    } else {
      removed.forEach((_, i) => { old(body.insertRow(), i); shown(i); });
      added.forEach((_, j) => fresh(body.insertRow(), j));
    }
    at.old += removed.length;
    at.new += added.length;
  }

  function build(pre, wide, items) {
    const reasons = new Map();
    for (const item of items) {
      item.hidden = false;
      const line = Number(item.dataset.line);
      if (line) reasons.set(line, [...(reasons.get(line) ?? []), item]);
    }
    const table = make("table", "diff");
    table.append(make("caption", "hidden", `Changes of ${pre.dataset.name}`));
    headRow(table, wide ? ["old line", "old text", "new line", "new text"] : ["line", "text"]);
    const columns = make("colgroup");
    for (let i = 0; i < (wide ? 2 : 1); i++) columns.append(make("col", "number"), make("col"));
    table.append(columns);
    const body = table.createTBody();
    const lines = pre.textContent.split("\n");
    const starts = lines.flatMap((line, i) => (line.startsWith("@@ ") ? [i] : []));
    starts.forEach((start, i) => {
      const head = lines[start].match(/^@@ -(\d+)\S* \+(\d+)/);
      const at = { old: Number(head[1]), new: Number(head[2]) };
      const gap = make("td", "", `line ${at.old}`);
      gap.colSpan = wide ? 4 : 2;
      const row = body.insertRow();
      row.className = "gap";
      row.append(gap);
      for (const run of [...runs(lines.slice(start + 1, starts[i + 1]))].slice(0, -1)) {
        if (run.same === undefined) {
          changed(body, run.removed, run.added, wide, at, reasons);
          continue;
        }
        const same = body.insertRow();
        numberCell(same, "", at.old++);
        textCell(same, "", "  ", run.same);
        if (wide) {
          numberCell(same, "", at.new);
          textCell(same, "", "  ", run.same);
        }
        explain(body, at.old - 1, reasons, wide ? 4 : 2);
        at.new++;
      }
    });
    return table;
  }

  const wide = matchMedia("(min-width: 64rem)");
  function show(details) {
    const pre = details.querySelector("pre.diff");
    if (!pre || !details.open) return;
    details.querySelector("table.diff")?.remove();
    pre.hidden = true;
    pre.after(build(pre, wide.matches, details.querySelectorAll(".reasons li")));
  }
  for (const details of document.querySelectorAll(".file")) details.addEventListener("toggle", () => show(details));
  wide.addEventListener("change", () => document.querySelectorAll(".file[open]").forEach(show));
  reveal();
})();
