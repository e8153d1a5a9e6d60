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

// Rows whose state is "default" are folded away below the others.
function tableCard(table) {
    const rows = table.rows.filter((row) => row.state !== "default");
    const defaults = table.rows.filter((row) => row.state === "default");
    return el("section", {class: "card"}, el("h2", {}, table.title),
        rows.length ? reportTable({...table, rows}) : el("p", {class: "quiet"}, "All at their defaults."),
        defaults.length ? el("details", {}, el("summary", {}, "All settings: " + formatCount(defaults.length) + " at their defaults"),
            reportTable({...table, rows: defaults})) : null);
}
