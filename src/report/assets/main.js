// Puts the page together.

const THEMES = ["light", "dark"];

function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function tile(name, value, note, state) {
    return el("div", {class: "tile " + (state || "")}, el("dt", {}, name), el("dd", {}, value, note ? el("small", {}, note) : null));
}

function tiles(trace) {
    const {summary, limit, marks, has} = trace.meta;
    return el("dl", {class: "tiles"},
        tile(trace.points > 1 ? "Peak allocated" : "Allocated", formatBytes(summary.peak_allocated), summary.peak_point ? "event " + formatCount(summary.peak_point - 1) : null),
        has.segments ? tile(trace.points > 1 ? "Peak reserved" : "Reserved", formatBytes(summary.peak_reserved),
            summary.peak_reserved ? ((100 * summary.peak_allocated) / summary.peak_reserved).toFixed(0) + " % used at best" : null) : null,
        limit ? tile("Limit", formatBytes(limit)) : null,
        marks.length ? tile("Out of memory", marks.length === 1 ? "once" : marks.length + " times",
            "last asked " + formatBytes(marks.at(-1).size), "bad") : null,
        tile("Allocations", formatCount(summary.allocation_count), formatCount(trace.meta.event_count) + " events"));
}

function verdictCard({level, headline, text}) {
    return el("section", {class: "verdict " + level}, el("p", {class: "lead"}, headline), text.length ? el("p", {}, text.join(" ")) : null);
}

function build(header, columns) {
    const page = document.getElementById("page"), tip = new Tooltip();
    const traces = header.traces.map((meta) => new Trace(meta, columns));
    const several = traces.length > 1;
    const panels = traces.map((trace) =>
        new Panel(trace, tip, several ? trace.meta.name + ", memory over time" : trace.points > 1 ? "Memory over time" : "Snapshot without a history"));
    const advice = header.advice ? adviceCard(header, columns, tip) : null;
    const series = header.series?.length && traces.length ? seriesCard(header, columns, tip) : null;
    const pictures = header.maps?.some((map) => map.size) ? picturesCard(header, columns) : null;
    const parts = [];
    if (header.verdict) parts.push(verdictCard(header.verdict));
    const filled = (header.tables || []).filter((table) => table.rows.length);
    const cards = (tables) => tables.length ? el("div", {class: "tables"}, tables.map(tableCard)) : null;
    const lead = cards(filled.filter((table) => table.first)), ready = cards(filled.filter((table) => !table.first));
    if (lead) parts.push(lead);
    for (const card of [series, pictures]) if (card) parts.push(card.node);
    if (traces.length === 1) parts.push(tiles(traces[0]));
    if (advice) parts.push(advice.node);
    if (several && ready) parts.push(ready);
    for (const [n, panel] of panels.entries()) {
        if (several) parts.push(tiles(traces[n]));
        parts.push(panel.node);
    }
    if (!several && ready) parts.push(ready);
    parts.push(el("footer", {}, [header.generator + " " + header.verb, traces.map((t) => t.meta.device).join(", "),
        "this file is complete in itself and sends nothing"].filter(Boolean).join(" · ")));
    page.replaceChildren(...parts);

    const draw = () => {
        readPalette();
        for (const panel of panels) panel.update();
        for (const card of [advice, series, pictures]) card?.draw();
    };
    document.getElementById("theme").addEventListener("click", () => {
        document.documentElement.dataset.theme = isDark() ? "light" : "dark";
        draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    addEventListener("resize", () => { for (const card of [advice, series, pictures]) card?.draw(); });
    document.addEventListener("keydown", (event) => {
        if (event.target instanceof HTMLInputElement) {
            if (event.key === "Escape") event.target.blur();
        } else if (event.key === "/") {
            panels[0]?.query.focus();
            event.preventDefault();
        } else if (event.target === document.body && panels[0]?.timeline && panels[0].key(event)) {
            event.preventDefault();
        }
    });
    draw();
    document.documentElement.dataset.ready = "true";
    performance.mark("ready");
}

async function main() {
    try {
        const {header, columns} = await unpack(document.getElementById("data").textContent);
        build(header, columns);
    } catch (error) {
        document.getElementById("page").replaceChildren(
            el("p", {class: "loading"}, "This report could not be shown: " + error.message));
        throw error;
    }
}

main();
