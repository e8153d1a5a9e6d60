// Tables that come ready from the report: {title, columns: [{name, kind}], rows: [{cells, state}]}.
// Kinds: text, code, bytes, change (bytes with a sign), number, duration.

function cellText(kind, value) {
    if (value == null) return "–";
    if (kind === "bytes") return formatBytes(value);
    if (kind === "change") return value === 0 ? "0" : (value > 0 ? "+" : "") + formatBytes(value);
    if (kind === "number") return formatCount(value);
    if (kind === "duration") return formatDuration(value);
    return value === "" ? "–" : value;
}

const isNumeric = (kind) => kind !== "text" && kind !== "code";

function reportTable(table, decorate) {
    const head = table.columns.map((column) => el("th", {class: isNumeric(column.kind) ? "number" : null}, column.name));
    const rows = table.rows.map((row, n) => {
        const cells = row.cells.map((value, c) => {
            const {kind} = table.columns[c];
            const text = cellText(kind, value);
            const tone = kind === "change" && value ? (value > 0 ? " more" : " less") : "";
            return el("td", {class: (isNumeric(kind) ? "number" : "") + tone, "data-label": table.columns[c].name},
                kind === "code" && value ? el("code", {}, text) : text);
        });
        const node = el("tr", {class: row.state || null}, cells);
        decorate?.(node, row, n);
        return node;
    });
    return el("div", {class: "scroll"}, el("table", {class: "report"}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function tableCard(table) {
    return el("section", {class: "card"}, el("h2", {}, table.title), reportTable(table));
}
