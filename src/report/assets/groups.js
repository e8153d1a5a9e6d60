// The table of groups: what each holds at the chosen moment, and the most it ever held. Its colours
// are the legend of the charts.

const GROUP_ROWS = 100;

class Groups {
    constructor(panel) {
        this.panel = panel;
        this.order = "now";
        this.head = el("tr", {});
        this.body = el("tbody", {});
        this.title = el("h2", {}, "Who holds memory");
        this.note = el("p", {class: "quiet"});
        this.node = el("section", {class: "card groups"}, el("div", {class: "bar"}, this.title), this.note,
            el("div", {class: "scroll"}, el("table", {}, el("thead", {}, this.head), this.body)));
    }

    #column(order, text) {
        return el("th", {class: "number", "aria-sort": this.order === order ? "descending" : null},
            el("button", {type: "button", onclick: () => {
                this.order = order;
                this.update();
            }}, text));
    }

    update() {
        const {trace, mode, moment, marked} = this.panel;
        const now = trace.groupsAt(mode, moment), peak = trace.groupPeaks(mode);
        let rows = Array.from(now.bytes, (_, group) => group).filter((group) => peak[group] > 0);
        if (marked) {
            const hit = new Uint8Array(now.bytes.length);
            for (let i = 0; i < marked.length; i++) if (marked[i]) hit[trace.groupOf(mode, i)] = 1;
            rows = rows.filter((group) => hit[group]);
        }
        const key = {now: now.bytes, peak, blocks: now.blocks}[this.order];
        rows.sort((a, b) => key[b] - key[a] || peak[b] - peak[a]);
        this.head.replaceChildren(el("th", {}, {line: "Code line", stack: "Stack", category: "Category"}[mode]),
            this.#column("now", "Now"), this.#column("peak", "Most"), this.#column("blocks", "Blocks"));
        this.title.textContent = "Who holds memory" + momentText(trace, moment);
        const left = rows.length - GROUP_ROWS;
        this.note.textContent = formatBytes(now.total) + " in use" + (left > 0 ? "; the first " + GROUP_ROWS + " of " + formatCount(rows.length) : "") +
            (mode === "category" && trace.meta.categories_inferred ? "; categories are inferred from lifetimes and stacks" : "");
        this.body.replaceChildren(...rows.slice(0, GROUP_ROWS).map((group) => this.#row(group, now, peak)));
        this.mark();
    }

    #row(group, now, peak) {
        const {trace, mode} = this.panel, text = trace.groupText(mode, group);
        const band = trace.bandOfGroup(mode, group);
        const focus = () => this.panel.setFocus(band);
        return el("tr", {"data-band": band, onmouseenter: focus, onmouseleave: () => this.panel.setFocus(-1)},
            el("td", {}, el("button", {type: "button", class: "name", onfocus: focus, onblur: () => this.panel.setFocus(-1),
                onclick: () => this.panel.pinGroup(group)},
            swatch(bandColor(trace, mode, band)), el("span", {class: "text"}, el("span", {}, text.title),
                text.place ? el("span", {class: "function"}, text.place) : null))),
            el("td", {class: "number"}, now.bytes[group] ? formatBytes(now.bytes[group]) : "–"),
            el("td", {class: "number soft"}, formatBytes(peak[group])),
            el("td", {class: "number soft"}, now.blocks[group] ? formatCount(now.blocks[group]) : "–"));
    }

    // Show which row the pinned band belongs to.
    mark() {
        for (const row of this.body.children) {
            row.classList.toggle("pinned", Number(row.dataset.band) === this.panel.pinned);
        }
    }
}
