// Memory over time: bands stacked to what is allocated, the line of what is reserved, the limit,
// out-of-memory marks, the peak, and the chosen moment.

class Timeline {
    constructor(panel) {
        this.panel = panel;
        this.surface = new Surface(innerWidth < 600 ? 300 : 380, "Allocated and reserved memory over the trace. " +
            "Arrow keys move the chosen moment, plus and minus zoom, P goes to the peak, O to the out-of-memory.");
        this.node = this.surface.node;
        this.top = 40;
        this.bottom = this.surface.height - 26;
        listen(this.surface, panel, this);
    }

    yOf(bytes) { return this.bottom - (this.bottom - this.top) * Math.min(1, bytes / this.high); }

    draw(samples) {
        const {trace, view} = this.panel;
        this.samples = samples;
        const {limit} = trace.meta;
        let high = 1;
        for (let x = 0; x < samples.width; x++) high = Math.max(high, samples.total[x], samples.reserved[x]);
        this.limitShown = limit > 0 && limit <= high * 2;
        this.high = 1.04 * Math.max(high, this.limitShown ? limit : 0);
        const g = this.surface.context(this.surface.base);
        this.#drawGrid(g);
        g.save();
        g.beginPath();
        g.rect(this.surface.left, 0, this.surface.right - this.surface.left, this.surface.height);
        g.clip();
        this.#drawBands(g);
        this.#drawReserved(g);
        g.restore();
        this.#drawLimit(g);
        drawXAxis(g, this.surface, view, this.bottom);
        this.#drawMarks(g);
        this.drawOver();
    }

    #drawGrid(g) {
        const {left, right} = this.surface;
        for (const tick of byteTicks(this.high, (this.bottom - this.top) / 38)) {
            const y = Math.round(this.yOf(tick));
            g.fillStyle = palette.rule;
            g.fillRect(left, y, right - left, 1);
            g.fillStyle = palette.soft;
            g.textAlign = "right";
            g.fillText(formatTick(tick), left - 8, y);
        }
        for (const event of this.panel.trace.meta.steps || []) {
            const share = this.panel.view.share(event + 1);
            if (share >= 0 && share <= 1) {
                verticalLine(g, this.surface.xOf(share), this.top, this.bottom, palette.rule, 1, [2, 4]);
            }
        }
    }

    // Steps from column to column, filled between `low` and `high` (bytes per column).
    #area(g, low, high, color) {
        const {ratio, left} = this.surface, {width} = this.samples;
        g.fillStyle = color;
        g.beginPath();
        for (let x = 0; x < width; x++) {
            const y = this.yOf(high(x));
            g.lineTo(left + x / ratio, y);
            g.lineTo(left + (x + 1) / ratio, y);
        }
        for (let x = width - 1; x >= 0; x--) {
            const y = this.yOf(low(x));
            g.lineTo(left + (x + 1) / ratio, y);
            g.lineTo(left + x / ratio, y);
        }
        g.fill();
    }

    #drawBands(g) {
        const {trace, mode, marked, focus} = this.panel, {samples} = this;
        const {width, bands, parts, total} = samples;
        this.#area(g, (x) => total[x], (x) => Math.max(total[x], samples.reserved[x]), palette.held);
        if (marked) {
            const part = sampleMarked(trace, marked, samples.at);
            this.#area(g, () => 0, (x) => part[x], palette.accent);
            this.#area(g, (x) => part[x], (x) => Math.max(part[x], total[x]), palette.faint);
            return;
        }
        const below = new Float64Array(width), above = new Float64Array(width);
        for (let k = 0; k < bands; k++) {
            for (let x = 0; x < width; x++) above[x] = below[x] + parts[x * bands + k];
            g.globalAlpha = focus >= 0 && focus !== k ? 0.28 : 1;
            this.#area(g, (x) => below[x], (x) => above[x], bandColor(trace, mode, k));
            below.set(above);
        }
        g.globalAlpha = 1;
    }

    #drawReserved(g) {
        const {ratio, left} = this.surface, {samples} = this;
        if (!this.panel.trace.meta.has.segments) return;
        g.strokeStyle = palette.ink;
        g.lineWidth = 1.5;
        g.lineJoin = "round";
        g.beginPath();
        for (let x = 0; x < samples.width; x++) {
            const y = this.yOf(samples.reserved[x]);
            g.lineTo(left + x / ratio, y);
            g.lineTo(left + (x + 1) / ratio, y);
        }
        g.stroke();
    }

    #drawLimit(g) {
        const {left, right} = this.surface, {limit} = this.panel.trace.meta;
        if (!this.limitShown) return;
        const y = Math.round(this.yOf(limit)) + 0.5;
        g.strokeStyle = palette.bad;
        g.lineWidth = 1.5;
        g.setLineDash([6, 4]);
        g.beginPath();
        g.moveTo(left, y);
        g.lineTo(right, y);
        g.stroke();
        g.setLineDash([]);
        const text = "limit " + formatBytes(limit);
        g.textAlign = "left";
        g.fillStyle = palette.card;
        g.fillRect(left + 6, y + 3, g.measureText(text).width + 8, 16);
        g.fillStyle = palette.bad;
        g.fillText(text, left + 10, y + 11);
    }

    #drawMarks(g) {
        const {trace, view} = this.panel, {surface} = this;
        const labels = new LabelRow(g, surface.left, surface.right, 2, 15);
        g.font = "600 12px " + palette.font;
        for (const mark of trace.meta.marks) {
            const share = view.share(mark.event + 1);
            if (share < 0 || share > 1) continue;
            const x = surface.xOf(share);
            verticalLine(g, x, 2, this.bottom, palette.bad, 1.5);
            labels.put("out of memory", x, 10, palette.bad);
        }
        const {peak_allocated: peak, peak_point: point} = trace.meta.summary;
        const share = view.share(point);
        if (peak > 0 && share >= 0 && share < 1) {
            const x = surface.xOf(share), y = this.yOf(peak);
            g.fillStyle = palette.ink;
            g.strokeStyle = palette.card;
            g.lineWidth = 2;
            g.beginPath();
            g.arc(x, y, 4, 0, 7);
            g.fill();
            g.stroke();
            labels.put("peak " + formatBytes(peak), x, 10, palette.ink);
            verticalLine(g, x, 18, y - 6, palette.soft, 1, [1, 3]);
        }
    }

    drawOver(brush) {
        const {surface} = this, {view, moment, hovered} = this.panel;
        const g = surface.context(surface.over);
        const inside = (point) => surface.xOf(Math.min(1, Math.max(0, view.share(point))));
        const share = view.share(moment);
        if (share >= 0 && share <= 1) {
            const x = inside(moment);
            verticalLine(g, x, this.top - 4, this.bottom, palette.ink, 1.5);
            g.fillStyle = palette.ink;
            g.beginPath();
            g.moveTo(x - 5, this.bottom + 6);
            g.lineTo(x + 6, this.bottom + 6);
            g.lineTo(x + 0.5, this.bottom);
            g.fill();
        }
        if (hovered != null) verticalLine(g, inside(hovered), this.top - 4, this.bottom, palette.soft, 1, [3, 3]);
        if (brush) {
            const [a, b] = brush.map((p) => Math.min(Math.max(p.x, surface.left), surface.right));
            g.fillStyle = palette.accent;
            g.globalAlpha = 0.18;
            g.fillRect(Math.min(a, b), this.top, Math.abs(a - b), this.bottom - this.top);
            g.globalAlpha = 1;
        }
    }

    // Column, point and band under the pointer; band -1 above all of them.
    #find(at) {
        const {surface, samples} = this;
        const x = Math.floor((at.x - surface.left) * surface.ratio);
        if (!samples || x < 0 || x >= samples.width || at.y > this.bottom + 8) return null;
        const bytes = ((this.bottom - at.y) / (this.bottom - this.top)) * this.high;
        let sum = 0, band = -1;
        for (let k = 0; k < samples.bands && band < 0; k++) {
            sum += samples.parts[x * samples.bands + k];
            if (bytes >= 0 && bytes < sum) band = k;
        }
        return {x, point: samples.at[x], band};
    }

    hover(at, brush) {
        const found = at && this.#find(at);
        this.panel.setHovered(found ? found.point : null, brush);
        if (!found) return this.panel.tip.hide();
        this.panel.tip.show(this.describe(found));
    }

    describe({x, point, band}) {
        const {trace, mode} = this.panel, {samples} = this;
        if (band >= 0) {
            return bandDetails(trace, mode, band, point, samples.parts[x * samples.bands + band], samples.total[x], 6);
        }
        const reserved = trace.reservedAt(point);
        return [el("h3", {}, "Event " + eventText(trace, point)),
            el("dl", {}, fact("Allocated", formatBytes(samples.total[x])),
                trace.meta.has.segments ? fact("Reserved", formatBytes(reserved)) : null,
                trace.meta.has.segments ? fact("Not in use", formatBytes(Math.max(0, reserved - samples.total[x]))) : null)];
    }

    click(at) {
        const found = this.#find(at);
        if (!found) return;
        const {trace, mode} = this.panel, {samples} = this;
        const details = found.band < 0 ? null
            : bandDetails(trace, mode, found.band, found.point,
                samples.parts[found.x * samples.bands + found.band], samples.total[found.x], 40);
        this.panel.choose(found.point, details, found.band);
    }
}
