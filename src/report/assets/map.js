// The address map: y is the address space of the segments, pushed together; x is the same stretch of
// the trace as the timeline's. Every column shows one state, the one that the timeline shows there.
// Colour: a block, by its group. Pale: free inside a segment. Empty: not held from the driver.
//
// The picture is made pixel by pixel, so that a million blocks cost as much as a thousand; the same
// pass remembers which block each pixel shows.

const NOTHING = -1, HOLE = -2;

class AddressMap {
    constructor(panel) {
        this.panel = panel;
        this.surface = new Surface(innerWidth < 600 ? 280 : 340, "Blocks by address over the trace");
        this.node = this.surface.node;
        this.top = 6;
        this.bottom = this.surface.height - 24;
        this.regions = mapRegions(panel.trace);
        const offsets = (table) => Float64Array.from(table.address, (address) => this.regions.offsetOf(address));
        this.blockOffset = offsets(panel.trace.allocations);
        this.segmentOffset = offsets(panel.trace.segments);
        this.reset();
        listen(this.surface, panel, this);
    }

    // Show all addresses again.
    reset() {
        this.low = 0;
        this.high = this.regions.total;
    }

    draw(samples) {
        this.samples = samples;
        const {surface, panel} = this;
        this.width = samples.width;
        this.rows = Math.max(1, Math.round((this.bottom - this.top) * surface.ratio));
        this.owner = new Int32Array(this.width * this.rows).fill(NOTHING);
        this.image = new ImageData(this.width, this.rows);
        this.pixels = new Uint32Array(this.image.data.buffer);
        this.#paintSegments();
        this.#paintBlocks();
        this.#paintEdges();
        const g = surface.context(surface.base);
        g.putImageData(this.image, Math.round(surface.left * surface.ratio), Math.round(this.top * surface.ratio));
        this.#drawAxis(g);
        drawXAxis(g, surface, panel.view, this.bottom);
        this.drawOver();
    }

    // Row of an offset in the pushed-together space; may lie outside.
    #row(offset) { return ((offset - this.low) / (this.high - this.low)) * this.rows; }

    #fill(start, end, offset, size, value, color, edge) {
        const {at} = this.samples;
        if (offset < 0 || end <= at[0] || start > at[at.length - 1]) return;
        const from = lowerBound(at, start), to = lowerBound(at, end);
        if (from === to) return;
        const top = this.#row(offset), bottom = this.#row(offset + size);
        if (bottom < 0 || top >= this.rows) return;
        const first = Math.max(0, Math.floor(top));
        const last = Math.min(this.rows, Math.max(first + 1, Math.floor(bottom)));
        for (let y = first; y < last; y++) {
            const line = y * this.width, shade = edge !== undefined && y === first && last - first > 3 ? edge : color;
            this.pixels.fill(shade, line + from, line + to);
            this.owner.fill(value, line + from, line + to);
        }
    }

    #paintSegments() {
        const {segments} = this.panel.trace, color = pixelOf(palette.hole);
        for (let i = 0; i < segments.count; i++) {
            this.#fill(segments.start[i], segments.end[i], this.segmentOffset[i], segments.size[i], HOLE, color);
        }
    }

    #paintBlocks() {
        const {trace, mode, marked, focus} = this.panel;
        const {start, end, size, count} = trace.allocations;
        const band = trace.seriesOf[mode];
        const colors = trace.series[mode].map((_, k) => bandColor(trace, mode, k));
        const plain = colors.map((c) => pixelOf(c)), dim = colors.map((c) => pixelOf(c, 0.25, palette.hole));
        const edges = colors.map((c) => pixelOf(c, 0.72, palette.card));
        const accent = pixelOf(palette.accent), faint = pixelOf(palette.faint);
        for (let i = 0; i < count; i++) {
            const k = band[i];
            let color = focus < 0 || focus === k ? plain[k] : dim[k], edge = focus < 0 || focus === k ? edges[k] : dim[k];
            if (marked) color = edge = marked[i] ? accent : faint;
            this.#fill(start[i], end[i], this.blockOffset[i], size[i], i, color, edge);
        }
    }

    // Where a segment begins: a line in the card's colour.
    #paintEdges() {
        const {segments} = this.panel.trace, {at} = this.samples, color = pixelOf(palette.ink, 0.55, palette.card);
        for (let i = 0; i < segments.count; i++) {
            const y = Math.floor(this.#row(this.segmentOffset[i]));
            const tall = this.#row(this.segmentOffset[i] + segments.size[i]) - y;
            if (y < 0 || y >= this.rows || tall < 5) continue;
            this.pixels.fill(color, y * this.width + lowerBound(at, segments.start[i]),
                y * this.width + lowerBound(at, segments.end[i]));
        }
    }

    #drawAxis(g) {
        const {surface} = this, span = this.high - this.low;
        g.textAlign = "right";
        for (const tick of byteTicks(span, (this.bottom - this.top) / 38)) {
            const y = this.top + ((this.bottom - this.top) * tick) / span;
            g.fillStyle = palette.rule;
            g.fillRect(surface.left - 5, Math.round(y), 5, 1);
            g.fillStyle = palette.soft;
            const text = tick === 0 ? (this.low > 0 ? "+" + formatTick(0) : "0") : (this.low > 0 ? "+" : "") + formatTick(tick);
            if (y < this.bottom - 4) g.fillText(text, surface.left - 8, Math.max(y, this.top + 6));
        }
    }

    drawOver(brush) {
        const {surface} = this, {view, moment, hovered} = this.panel;
        const g = surface.context(surface.over);
        for (const [point, color, dash] of [[moment, palette.ink, []], [hovered, palette.soft, [3, 3]]]) {
            const share = point == null ? -1 : view.share(point);
            if (share >= 0 && share <= 1) verticalLine(g, surface.xOf(share), this.top, this.bottom, color, 1.5, dash);
        }
        if (brush) {
            const [a, b] = brush;
            g.fillStyle = palette.accent;
            g.globalAlpha = 0.25;
            g.fillRect(Math.min(a.x, b.x), Math.min(a.y, b.y), Math.abs(a.x - b.x), Math.abs(a.y - b.y));
            g.globalAlpha = 1;
        }
    }

    // A brush that is tall enough zooms the addresses too.
    brushed(from, to) {
        const share = (y) => Math.min(1, Math.max(0, (y - this.top) / (this.bottom - this.top)));
        const [a, b] = [share(from.y), share(to.y)].sort((x, y) => x - y);
        if ((b - a) * (this.bottom - this.top) < 24) return;
        const span = this.high - this.low;
        this.high = this.low + span * b;
        this.low += span * a;
        this.panel.redraw();
    }

    #find(at) {
        const {surface} = this;
        const x = Math.floor((at.x - surface.left) * surface.ratio);
        const y = Math.floor((at.y - this.top) * surface.ratio);
        if (!this.owner || x < 0 || x >= this.width || y < 0 || y >= this.rows) return null;
        const offset = this.low + ((this.high - this.low) * (y + 0.5)) / this.rows;
        return {point: this.samples.at[x], value: this.owner[y * this.width + x], address: this.regions.addressOf(offset)};
    }

    hover(at, brush) {
        const found = at && this.#find(at);
        this.panel.setHovered(found ? found.point : null, brush);
        const content = found && this.describe(found, 6);
        if (content) this.panel.tip.show(content);
        else this.panel.tip.hide();
    }

    describe({value, point, address}, most) {
        const {trace, mode} = this.panel;
        if (value >= 0) return blockDetails(trace, mode, value, most);
        return value === HOLE ? holeDetails(freeRange(trace, point, address)) : null;
    }

    click(at) {
        const found = this.#find(at);
        if (!found) return;
        const band = found.value >= 0 ? this.panel.trace.seriesOf[this.panel.mode][found.value] : -1;
        this.panel.choose(found.point, this.describe(found, 40), band);
    }
}

// The ranges of addresses that segments ever covered, merged where they touch.
function mapRegions(trace) {
    const table = trace.segments.count ? trace.segments : trace.allocations;
    const order = Array.from(table.address, (_, i) => i).sort((a, b) => table.address[a] - table.address[b]);
    const start = [], end = [], offset = [];
    for (const i of order) {
        const from = table.address[i], to = from + table.size[i];
        if (end.length && from <= end[end.length - 1]) end[end.length - 1] = Math.max(end[end.length - 1], to);
        else {
            start.push(from);
            end.push(to);
        }
    }
    let total = 0;
    for (let r = 0; r < start.length; r++) {
        offset.push(total);
        total += end[r] - start[r];
    }
    const regionOf = (list, value) => upperBound(list, value) - 1;
    return {total: Math.max(1, total), count: start.length,
        offsetOf(address) {
            const r = regionOf(start, address);
            return r < 0 || address >= end[r] ? -1 : offset[r] + address - start[r];
        },
        addressOf(value) {
            const r = Math.max(0, regionOf(offset, value));
            return start.length ? Math.floor(start[r] + value - offset[r]) : 0;
        }};
}

// Segments at a point with their blocks in order; ranges that touch in expandable mode are one.
function segmentsAt(trace, point) {
    const {segments, allocations} = trace, list = [];
    for (let i = 0; i < segments.count; i++) {
        if (segments.start[i] <= point && point < segments.end[i]) {
            list.push({address: segments.address[i], size: segments.size[i], stream: segments.stream[i],
                expandable: (segments.flags[i] & 2) !== 0, used: 0, blocks: []});
        }
    }
    list.sort((a, b) => a.address - b.address);
    const merged = [];
    for (const segment of list) {
        const last = merged[merged.length - 1];
        if (last && last.expandable && segment.expandable && last.address + last.size === segment.address) last.size += segment.size;
        else merged.push(segment);
    }
    const starts = merged.map((segment) => segment.address);
    for (const i of trace.liveAt(point)) {
        const segment = merged[upperBound(starts, allocations.address[i]) - 1];
        if (!segment || allocations.address[i] >= segment.address + segment.size) continue;
        segment.blocks.push(i);
        segment.used += allocations.size[i];
    }
    for (const segment of merged) segment.blocks.sort((a, b) => allocations.address[a] - allocations.address[b]);
    return merged;
}

// The free range around an address at a point.
function freeRange(trace, point, address) {
    const {allocations} = trace;
    const segment = segmentsAt(trace, point).find((s) => address >= s.address && address < s.address + s.size);
    if (!segment) return {address, size: 0};
    let low = segment.address, high = segment.address + segment.size;
    for (const i of segment.blocks) {
        const from = allocations.address[i], to = from + allocations.size[i];
        if (to <= address) low = Math.max(low, to);
        else if (from > address) high = Math.min(high, from);
    }
    return {address: low, size: high - low, segment: segment.size};
}
