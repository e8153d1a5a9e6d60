// Drawing on canvas: sizes in device pixels, colours of the present theme, labels that keep apart.

// Ten hues that stay apart in both themes and for the common kinds of colour blindness; neighbours in
// a stack differ in lightness as well.
const HUES = {
    light: ["#3f66c9", "#e8a72c", "#5ab8a5", "#c4618c", "#7d5bbf", "#8fb1ee", "#96694c", "#3f9150", "#d9826a",
        "#5b7a8c", "#b4a93c"],
    dark: ["#5b82e6", "#e3ac42", "#5fbfae", "#cf6f9a", "#9274d6", "#9dbcf2", "#ab7d60", "#58a868", "#df8d76",
        "#7594a6", "#bdb24d"],
};

const palette = {};

function readPalette() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "card", "ink", "soft", "faint", "rule", "held", "hole", "other", "accent", "bad"]) {
        palette[name] = style.getPropertyValue("--" + name).trim();
    }
    palette.hues = HUES[style.getPropertyValue("--theme").trim()] || HUES.light;
    palette.font = style.getPropertyValue("--sans").trim();
}

// Colour of a band: by rank; a category keeps its colour whatever its rank; "other" is grey.
function bandColor(trace, mode, band) {
    const bands = trace.series[mode];
    if (band >= bands.length - 1) return palette.other;
    if (mode === "category") {
        return bands[band].group === 0 ? palette.other : palette.hues[(bands[band].group + 2) % palette.hues.length];
    }
    return palette.hues[band % palette.hues.length];
}

function groupColor(trace, mode, group) {
    return bandColor(trace, mode, trace.bandOfGroup(mode, group));
}

// "#rrggbb" as the number that a Uint32Array over ImageData takes (little-endian RGBA).
function pixelOf(color, share = 1, towards = "#000000") {
    const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
    const mix = (i) => Math.round(part(color, i) * share + part(towards, i) * (1 - share));
    return ((255 << 24) | (mix(2) << 16) | (mix(1) << 8) | mix(0)) >>> 0;
}

// Two canvases on top of each other: one for what changes with the view, one for the pointer.
class Surface {
    constructor(height, label) {
        this.height = height;
        this.base = el("canvas", {"aria-hidden": "true"});
        this.over = el("canvas", {class: "over", tabindex: "0", role: "img", "aria-label": label});
        this.node = el("div", {class: "surface"}, this.base, this.over);
        this.node.style.height = height + "px";
    }

    // Fit to the page; true if there is room to draw in.
    fit() {
        this.width = this.node.clientWidth;
        this.ratio = window.devicePixelRatio || 1;
        for (const canvas of [this.base, this.over]) {
            const width = Math.round(this.width * this.ratio), height = Math.round(this.height * this.ratio);
            if (canvas.width !== width || canvas.height !== height) {
                canvas.width = width;
                canvas.height = height;
            }
        }
        this.left = this.width < 520 ? 58 : 72;
        this.right = this.width - 10;
        return this.right - this.left > 40;
    }

    // A cleared context in CSS pixels.
    context(canvas) {
        const g = canvas.getContext("2d");
        g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
        g.clearRect(0, 0, this.width, this.height);
        g.font = "12px " + palette.font;
        g.textBaseline = "middle";
        return g;
    }

    get plotPixels() { return Math.max(1, Math.round((this.right - this.left) * this.ratio)); }
    xOf(share) { return this.left + (this.right - this.left) * share; }
    shareOf(x) { return (x - this.left) / (this.right - this.left); }
}

function verticalLine(g, x, top, bottom, color, width = 1, dash = []) {
    g.strokeStyle = color;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    g.moveTo(Math.round(x) + 0.5, top);
    g.lineTo(Math.round(x) + 0.5, bottom);
    g.stroke();
    g.setLineDash([]);
}

// Labels side by side along a line; one that would touch another goes a row down, or is left out.
class LabelRow {
    constructor(g, left, right, rows, rowHeight) {
        Object.assign(this, {g, left, right, rowHeight});
        this.rows = Array.from({length: rows}, () => []);
    }

    put(text, x, y, color) {
        const {g} = this;
        const width = g.measureText(text).width;
        const from = Math.min(Math.max(x + 5, this.left), this.right - width);
        for (let r = 0; r < this.rows.length; r++) {
            if (this.rows[r].every(([a, b]) => from > b + 8 || from + width < a - 8)) {
                this.rows[r].push([from, from + width]);
                g.fillStyle = color;
                g.textAlign = "left";
                g.fillText(text, from, y + r * this.rowHeight);
                return;
            }
        }
    }
}

// The x axis below a chart: ticks in events or in time.
function drawXAxis(g, surface, view, y) {
    const width = surface.right - surface.left;
    const time = view.axis === "time";
    const name = time ? "time" : "event";
    g.textAlign = "left";
    g.fillStyle = palette.soft;
    g.fillText(name, Math.max(0, surface.left - g.measureText(name).width - 26), y + 14);
    const offset = time ? 0 : 1;
    let end = -Infinity;
    for (const tick of decimalTicks(view.low - offset, view.high - offset, width / 95)) {
        if (tick < 0 || (!time && tick !== Math.round(tick))) continue;
        const x = surface.xOf((tick + offset - view.low) / (view.high - view.low));
        const text = time ? formatDuration(tick) : formatCount(tick);
        const half = g.measureText(text).width / 2;
        g.fillStyle = palette.rule;
        g.fillRect(Math.round(x), y, 1, 5);
        if (x - half < end + 8 || x + half > surface.width) continue;
        g.textAlign = "center";
        g.fillStyle = palette.soft;
        g.fillText(text, x, y + 14);
        end = x + half;
    }
}
