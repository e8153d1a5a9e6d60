// The segments at the chosen moment, one bar each: blocks in the colours of their groups, free ranges
// pale. Only the rows in sight are drawn.

const ROW = 24;

class Moment {
    constructor(panel) {
        this.panel = panel;
        this.order = "free";
        this.summary = el("p", {class: "quiet"});
        this.surface = new Surface(300, "Segments at the chosen moment");
        this.spacer = el("div", {class: "spacer"}, this.surface.node);
        this.scroller = el("div", {class: "segments", tabindex: "0", "aria-label": "Segments"}, this.spacer);
        this.scroller.addEventListener("scroll", () => this.draw());
        const {over} = this.surface;
        over.tabIndex = -1;
        over.addEventListener("pointermove", (event) => this.#hover(event));
        over.addEventListener("pointerleave", () => panel.tip.hide());
        over.addEventListener("click", (event) => {
            const found = this.#find(event);
            if (found && found.block >= 0) {
                panel.choose(panel.moment, blockDetails(panel.trace, panel.mode, found.block, 40), panel.trace.seriesOf[panel.mode][found.block]);
            }
        });
        this.title = el("h2", {}, "Segments");
        this.node = el("section", {class: "card moment"},
            el("div", {class: "bar"}, this.title,
                choice("Order of the segments", [["free", "Most free"], ["address", "By address"]], this.order, (value) => {
                    this.order = value;
                    this.update();
                })),
            this.summary, this.scroller);
    }

    update() {
        const {trace, moment} = this.panel;
        this.list = segmentsAt(trace, moment);
        if (this.order === "free") this.list.sort((a, b) => b.size - b.used - (a.size - a.used));
        let size = 0, used = 0, largest = 0;
        for (const segment of this.list) {
            size += segment.size;
            used += segment.used;
            for (const [, hole] of this.#holes(segment)) largest = Math.max(largest, hole);
        }
        const free = Math.max(0, size - used);
        this.title.textContent = "Segments" + momentText(trace, moment);
        this.summary.textContent = formatCount(this.list.length) + (this.list.length === 1 ? " segment" : " segments") +
            ", " + formatBytes(size) + " reserved, " + formatBytes(free) + " free" + (free > 0 ? " (" + (100 * free / size).toFixed(1) + " %)" : "") + "; largest free range " + formatBytes(largest) +
            // Where next to nothing is free, how broken up it is does not matter.
            (size > 0 && free >= 0.05 * size ? ", fragmentation " + (100 * (1 - largest / free)).toFixed(0) + " %" : "");
        const tall = Math.max(ROW, this.list.length * ROW);
        this.spacer.style.height = tall + "px";
        this.surface.height = Math.min(320, tall);
        this.surface.node.style.height = this.surface.height + "px";
        this.scroller.style.height = this.surface.height + "px";
        this.draw();
    }

    // [address, size] of the free ranges of a segment.
    #holes(segment) {
        const {address, size} = this.panel.trace.allocations, holes = [];
        let at = segment.address;
        for (const i of segment.blocks) {
            if (address[i] > at) holes.push([at, address[i] - at]);
            at = Math.max(at, address[i] + size[i]);
        }
        if (at < segment.address + segment.size) holes.push([at, segment.address + segment.size - at]);
        return holes;
    }

    get #box() { return {left: 78, right: this.surface.width - 104}; }

    draw() {
        if (!this.list || !this.surface.fit()) return;
        const {surface, panel} = this, {trace, mode, marked, focus} = panel;
        const {address, size} = trace.allocations, {left, right} = this.#box;
        const g = surface.context(surface.base), offset = this.scroller.scrollTop;
        surface.context(surface.over);
        const first = Math.floor(offset / ROW), last = Math.min(this.list.length, Math.ceil((offset + surface.height) / ROW));
        for (let n = first; n < last; n++) {
            const segment = this.list[n], y = n * ROW - offset, scale = (right - left) / segment.size;
            g.fillStyle = palette.hole;
            g.fillRect(left, y + 4, right - left, ROW - 8);
            for (const i of segment.blocks) {
                const band = trace.seriesOf[mode][i];
                g.globalAlpha = !marked && focus >= 0 && band !== focus ? 0.3 : 1;
                g.fillStyle = marked ? (marked[i] ? palette.accent : palette.faint) : bandColor(trace, mode, band);
                const wide = size[i] * scale;
                g.fillRect(left + (address[i] - segment.address) * scale, y + 4, Math.max(0.75, wide > 3 ? wide - 1 : wide), ROW - 8);
            }
            g.globalAlpha = 1;
            g.fillStyle = palette.soft;
            g.textAlign = "right";
            g.fillText(formatBytes(segment.size), left - 8, y + ROW / 2);
            g.textAlign = "left";
            const free = segment.size - segment.used;
            g.fillStyle = free > 0 ? palette.ink : palette.soft;
            g.fillText(free > 0 ? formatBytes(free) + " free" : "full", right + 8, y + ROW / 2);
        }
    }

    #find(event) {
        const box = this.surface.over.getBoundingClientRect(), {left, right} = this.#box;
        const segment = this.list[Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW)];
        const share = (event.clientX - box.left - left) / (right - left);
        if (!segment || share < 0 || share >= 1) return null;
        const {address, size} = this.panel.trace.allocations, at = segment.address + share * segment.size;
        const block = segment.blocks.find((i) => at >= address[i] && at < address[i] + size[i]) ?? -1;
        return {segment, block, at};
    }

    #hover(event) {
        const found = this.#find(event), {trace, mode, tip} = this.panel;
        if (!found) return tip.hide();
        if (found.block >= 0) {
            tip.show(blockDetails(trace, mode, found.block, 6));
        } else {
            const [address, size] = this.#holes(found.segment).find(([a, s]) => found.at >= a && found.at < a + s) || [found.at, 0];
            tip.show(holeDetails({address, size, segment: found.segment.size}));
        }
        tip.move(event.clientX, event.clientY);
    }
}
