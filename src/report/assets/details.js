// Texts about a band, a block or a free range: the tooltip, and the panel that keeps what was clicked.

// Frames of a stack, innermost first; runs of library frames are folded to one line.
function stackList(trace, stack, most) {
    const frames = [...trace.stackOf(stack)];
    if (!frames.length) return el("p", {class: "quiet"}, stack ? "stack not kept in this file" : "no stack recorded");
    const list = el("ol", {class: "stack"});
    let folded = 0, shown = 0;
    const flush = () => {
        if (folded) list.append(el("li", {class: "quiet"}, folded === 1 ? "1 library frame" : folded + " library frames"));
        folded = 0;
    };
    const allInternal = frames.every((f) => trace.frames.internal[f] === 1);
    for (const f of frames) {
        const text = trace.frameText(f);
        if (text.internal && !allInternal) {
            folded++;
            continue;
        }
        flush();
        if (shown++ === most) {
            list.append(el("li", {class: "quiet"}, "…"));
            return list;
        }
        list.append(el("li", {title: text.file}, el("code", {}, text.short), " ", el("span", {class: "function"}, text.name)));
    }
    flush();
    return list;
}

const fact = (name, value) => [el("dt", {}, name), el("dd", {}, value)];

function eventText(trace, point) {
    if (point <= 0) return "before the trace";
    const time = trace.time ? " · " + formatDuration(trace.timeAt(point)) : "";
    return formatCount(point - 1) + time;
}

// " at event 12", for titles; nothing where a trace has no events.
function momentText(trace, point) {
    if (trace.points === 1) return "";
    return point > 0 ? " at event " + formatCount(point - 1) : " before the first event";
}

function lifeText(trace, i) {
    const {start, end} = trace.allocations;
    if (trace.points === 1) return "when the snapshot was taken";
    const from = start[i] === 0 ? "from before the trace" : "from event " + formatCount(start[i] - 1);
    if (end[i] >= trace.points) return from + ", still live at the end";
    const events = end[i] - start[i];
    const time = trace.time && start[i] > 0
        ? ", " + formatDuration(trace.timeAt(end[i]) - trace.timeAt(start[i])) : "";
    return from + " to " + formatCount(end[i] - 1) + " (" + formatCount(events) + " events" + time + ")";
}

function sizeText(trace, i) {
    const {size, rest} = trace.allocations;
    return formatBytes(size[i]) + (rest[i] > 0 ? " (" + formatBytes(size[i] - rest[i]) + " asked)" : "");
}

function swatch(color) {
    const node = el("i", {class: "swatch"});
    node.style.background = color;
    return node;
}

function heading(trace, mode, group) {
    const text = trace.groupText(mode, group);
    return el("h3", {}, swatch(groupColor(trace, mode, group)), el("span", {}, text.title),
        text.place ? el("span", {class: "function"}, text.place) : null);
}

function blockDetails(trace, mode, i, most) {
    const {address, stack, category} = trace.allocations;
    return [heading(trace, mode, trace.groupOf(mode, i)),
        el("dl", {}, fact("Block", sizeText(trace, i)),
            trace.meta.has.addresses ? fact("Address", formatAddress(address[i])) : null,
            fact("Lives", lifeText(trace, i)),
            mode === "category" ? null : fact("Category", trace.meta.categories[category[i]])),
        stackList(trace, stack[i], most)];
}

// A band of the timeline at a point. `bytes` are those of the chart, sums of small blocks included.
function bandDetails(trace, mode, band, point, bytes, total, most) {
    const {group} = trace.series[mode][band];
    let largest = -1, count = 0;
    for (const i of trace.liveAt(point)) {
        if (trace.seriesOf[mode][i] !== band) continue;
        count++;
        if (largest < 0 || trace.allocations.size[i] > trace.allocations.size[largest]) largest = i;
    }
    const share = total > 0 ? " · " + ((100 * bytes) / total).toFixed(0) + " % of " + formatBytes(total) : "";
    return [heading(trace, mode, group),
        el("dl", {}, fact("Holds", formatBytes(bytes) + share),
            fact("Blocks", formatCount(count) + (largest < 0 ? "" : ", largest " + sizeText(trace, largest))),
            fact("At event", eventText(trace, point))),
        largest < 0 ? null : stackList(trace, trace.allocations.stack[largest], most)];
}

function holeDetails(range) {
    return [el("h3", {}, swatch(palette.hole), el("span", {}, "free")),
        el("dl", {}, fact("Free range", formatBytes(range.size)), fact("Address", formatAddress(range.address)),
            range.segment ? fact("In segment of", formatBytes(range.segment)) : null)];
}

// Follows the pointer.
class Tooltip {
    constructor() {
        this.node = el("div", {class: "tip", role: "tooltip", hidden: true});
        document.body.append(this.node);
        this.x = this.y = 0;
    }

    show(content) {
        this.node.replaceChildren(...content.flat().filter((part) => part != null));
        this.node.hidden = false;
        this.place();
    }

    hide() { this.node.hidden = true; }

    move(x, y) {
        this.x = x;
        this.y = y;
        if (!this.node.hidden) this.place();
    }

    place() {
        const {offsetWidth: width, offsetHeight: height} = this.node;
        const beside = this.x + 16 + width < innerWidth ? this.x + 16 : this.x - 16 - width;
        this.node.style.left = Math.min(Math.max(4, beside), Math.max(4, innerWidth - width - 4)) + "px";
        this.node.style.top = Math.max(4, Math.min(this.y + 14, innerHeight - height - 6)) + "px";
    }
}
