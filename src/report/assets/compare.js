// Lines side by side over a recording, such as reserved memory under the recorded setting and others.
// Their legend stands elsewhere: rows of the advice, or buttons; a click shows or hides a line.

class Compare {
    constructor(trace, lines, columns, tip, {what, label}) {
        this.tip = tip;
        this.what = what;
        this.limit = trace.limit;
        this.events = trace.event_count;
        this.lines = lines.map((line, n) => ({name: line.name, recorded: line.recorded, oom: line.oom_event,
            shown: line.recorded || n < 3, point: readColumn(columns, line.point), bytes: readColumn(columns, line.bytes)}));
        this.surface = new Surface(260, label);
        this.surface.over.tabIndex = -1;
        this.surface.over.addEventListener("pointermove", (event) => this.#hover(event));
        this.surface.over.addEventListener("pointerleave", () => {
            this.tip.hide();
            this.surface.context(this.surface.over);
        });
        this.node = this.surface.node;
        this.top = 14;
        this.bottom = this.surface.height - 24;
    }

    color(n) { return this.lines[n].recorded ? palette.ink : palette.hues[(n - 1) % palette.hues.length]; }

    toggle(n) {
        this.lines[n].shown = !this.lines[n].shown;
        this.draw();
        return this.lines[n].shown;
    }

    draw() {
        const {surface} = this;
        if (!surface.fit()) return;
        let high = 1;
        for (const line of this.lines) if (line.shown) for (const value of line.bytes) high = Math.max(high, value);
        const limitShown = this.limit > 0 && this.limit < 2 * high;
        this.high = 1.05 * Math.max(high, limitShown ? this.limit : 0);
        const g = surface.context(surface.base), y = (bytes) => this.bottom - ((this.bottom - this.top) * bytes) / this.high;
        for (const tick of byteTicks(this.high, (this.bottom - this.top) / 38)) {
            g.fillStyle = palette.rule;
            g.fillRect(surface.left, Math.round(y(tick)), surface.right - surface.left, 1);
            g.fillStyle = palette.soft;
            g.textAlign = "right";
            g.fillText(formatTick(tick), surface.left - 8, y(tick));
        }
        if (limitShown) {
            g.strokeStyle = palette.bad;
            g.setLineDash([6, 4]);
            g.lineWidth = 1.5;
            g.beginPath();
            g.moveTo(surface.left, Math.round(y(this.limit)) + 0.5);
            g.lineTo(surface.right, Math.round(y(this.limit)) + 0.5);
            g.stroke();
            g.setLineDash([]);
            g.fillStyle = palette.bad;
            g.textAlign = "left";
            g.fillText("limit " + formatBytes(this.limit), surface.left + 8, y(this.limit) - 9 < 8 ? y(this.limit) + 10 : y(this.limit) - 9);
        }
        this.lines.forEach((line, n) => line.shown && this.#drawLine(g, line, n, y));
        drawXAxis(g, surface, {axis: "event", low: 0, high: this.events + 1}, this.bottom);
    }

    #x(point) { return this.surface.xOf(point / (this.events + 1)); }

    #drawLine(g, line, n, y) {
        const stop = line.oom == null ? this.events + 1 : line.oom + 1;
        g.strokeStyle = this.color(n);
        g.lineWidth = line.recorded ? 2.5 : 2;
        g.lineJoin = "round";
        g.beginPath();
        let level = 0;
        for (let i = 0; i < line.point.length && line.point[i] <= stop; i++) {
            if (i > 0) g.lineTo(this.#x(line.point[i]), y(level));
            level = line.bytes[i];
            g.lineTo(this.#x(line.point[i]), y(level));
        }
        g.lineTo(this.#x(stop), y(level));
        g.stroke();
        if (line.oom == null) return;
        const x = Math.min(this.#x(stop), this.surface.right - 6), at = y(level);
        g.strokeStyle = palette.bad;
        g.lineWidth = 2.5;
        g.beginPath();
        for (const [dx, dy] of [[-5, -5], [5, -5]]) {
            g.moveTo(x + dx, at + dy);
            g.lineTo(x - dx, at - dy);
        }
        g.stroke();
    }

    #hover(event) {
        const {surface} = this, box = surface.over.getBoundingClientRect();
        const share = surface.shareOf(event.clientX - box.left);
        if (share < 0 || share > 1) return this.tip.hide();
        const point = Math.floor(share * (this.events + 1));
        verticalLine(surface.context(surface.over), surface.xOf(share), this.top, this.bottom, palette.soft, 1, [3, 3]);
        const rows = this.lines.map((line, n) => {
            if (!line.shown) return null;
            const over = line.oom != null && point > line.oom + 1;
            const at = upperBound(line.point, point) - 1;
            return [el("dt", {}, swatch(this.color(n)), line.name), el("dd", {}, over ? "out of memory" : formatBytes(at < 0 ? 0 : line.bytes[at]))];
        });
        this.tip.show([el("h3", {}, this.what + " at event " + formatCount(Math.max(0, point - 1))), el("dl", {class: "wide"}, rows)]);
        this.tip.move(event.clientX, event.clientY);
    }
}

function adviceCard(header, columns, tip) {
    const {advice} = header;
    const compare = header.replays?.length ? new Compare(header.traces[0], header.replays, columns, tip,
        {what: "Reserved", label: "Reserved memory over the recording, one line per setting"}) : null;
    const copy = el("button", {type: "button", onclick: async () => {
        try {
            await navigator.clipboard.writeText(advice.setting);
            copy.textContent = "Copied";
        } catch {
            getSelection().selectAllChildren(copy.previousSibling);
            copy.textContent = "Selected";
        }
    }}, "Copy");
    const table = reportTable(advice, (row, {replay}, n) => {
        if (n === advice.recommended) row.classList.add("best");
        const name = row.firstChild;
        if (!compare) return;
        const mark = swatch("transparent");
        if (replay == null) {
            name.replaceChildren(el("span", {class: "name"}, mark, el("span", {class: "text"}, ...name.childNodes)));
            return;
        }
        const button = el("button", {type: "button", class: "name", "aria-pressed": String(compare.lines[replay].shown),
            title: "Show or hide its line", onclick: () => button.setAttribute("aria-pressed", String(compare.toggle(replay)))},
        mark, el("span", {class: "text"}, ...name.childNodes));
        name.replaceChildren(button);
        compare.recolor ??= [];
        compare.recolor.push(() => { mark.style.background = compare.color(replay); });
    });
    const node = el("section", {class: "card advice"}, el("h2", {}, "What to set"),
        advice.setting ? el("div", {class: "paste"}, el("code", {}, advice.setting), copy) : null,
        advice.columns.length && advice.rows.length ? table : null, compare ? [el("h3", {}, "Reserved memory under each setting"), compare.node] : null,
        advice.notes?.length ? el("ul", {class: "notes"}, advice.notes.map((note) => el("li", {}, note))) : null);
    return {node, draw() {
        compare?.recolor?.forEach((paint) => paint());
        compare?.draw();
    }};
}
