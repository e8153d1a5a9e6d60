// Everything about one trace: its charts, its tables and what is chosen in them.

class Panel {
    constructor(trace, tip, title) {
        this.trace = trace;
        this.tip = tip;
        this.mode = trace.meta.has.stacks ? "line" : "category";
        this.marked = null;
        this.focus = this.pinned = -1;
        this.hovered = null;
        this.moment = trace.meta.moment_point;
        this.view = new View(trace, () => this.redraw());
        this.timeline = trace.points > 1 ? new Timeline(this) : null;
        this.strip = this.timeline ? new Strip(this) : null;
        this.map = this.timeline && trace.meta.has.addresses ? new AddressMap(this) : null;
        this.segments = trace.meta.has.addresses && trace.segments.count ? new Moment(this) : null;
        this.groups = new Groups(this);
        this.node = el("div", {class: this.timeline ? "panel" : "panel state"}, this.#chartCard(title), this.#side());
        new ResizeObserver(() => this.redraw()).observe(this.node);
    }

    #chartCard(title) {
        this.found = el("output", {class: "quiet"});
        this.query = el("input", {type: "search", placeholder: "Search function, file:line, category", "aria-label": "Search",
            spellcheck: "false", autocomplete: "off", oninput: () => this.search(this.query.value)});
        const modes = [["line", "Code line"], ["stack", "Stack"], ["category", "Category"]];
        const jumps = [["Whole", "0", () => this.view.reset()], ["Peak", "P", () => this.goTo(this.trace.meta.summary.peak_point)]];
        const oom = this.trace.meta.marks.at(-1);
        if (oom) jumps.push(["OOM", "O", () => this.goTo(oom.event + 1)]);
        const tools = el("div", {class: "tools"},
            choice("Group by", this.trace.meta.has.stacks ? modes : modes.slice(2), this.mode, (mode) => this.setMode(mode)),
            this.timeline && this.trace.time ? choice("X axis", [["event", "Events"], ["time", "Time"]], "event", (axis) => this.view.setAxis(axis)) : null,
            this.timeline ? el("div", {class: "choice", role: "group", "aria-label": "Go to"}, jumps.map(([text, key, go]) =>
                el("button", {type: "button", title: "Key " + key, onclick: go}, text))) : null,
            el("div", {class: "search"}, this.query, this.found));
        this.range = el("output", {class: "range"});
        const legend = el("p", {class: "legend"}, el("span", {class: "key bands"}, "allocated, by colour"),
            this.trace.meta.has.segments ? el("span", {class: "key reserved"}, "reserved") : null,
            this.trace.meta.has.segments ? el("span", {class: "key held"}, "reserved, not in use") : null,
            this.trace.meta.limit ? el("span", {class: "key limit"}, "limit") : null, this.range);
        const small = this.trace.meta.summary.small_count;
        return el("section", {class: "card charts"}, el("div", {class: "bar"}, el("h2", {}, title)), tools,
            this.timeline ? [legend, this.timeline.node, this.strip.node] : null,
            this.map ? [el("h3", {}, "Addresses"), this.map.node] : null,
            this.timeline ? el("p", {class: "quiet help"}, "Drag to zoom, Shift and drag or the wheel to move and zoom, double click for the whole. " +
                "Click to choose a moment. Keys: arrows, + −, 0, P, O, Esc; / searches.",
            small ? " " + formatCount(small) + " blocks of up to " + formatBytes(this.trace.meta.summary.small_limit) + " are shown as sums only." : "") : null);
    }

    #side() {
        this.pinBox = el("section", {class: "card pin", hidden: true, "aria-live": "polite"});
        return el("div", {class: "side"}, this.pinBox, this.groups.node, this.segments?.node);
    }

    redraw() {
        if (this.pending) return;
        this.pending = requestAnimationFrame(() => {
            this.pending = 0;
            this.draw();
        });
    }

    draw() {
        if (this.timeline?.surface.fit()) {
            const samples = sampleColumns(this.trace, this.mode, this.view.edges(this.timeline.surface.plotPixels));
            this.timeline.draw(samples);
            this.range.textContent = this.#rangeText();
            if (this.strip.surface.fit()) this.strip.draw();
            if (this.map?.surface.fit()) this.map.draw(samples);
        }
        this.segments?.draw();
    }

    #rangeText() {
        const {trace, view} = this;
        if (view.axis === "time") return formatDuration(view.low) + " to " + formatDuration(view.high);
        const first = Math.max(0, Math.floor(view.low) - 1), end = Math.min(Math.ceil(view.high) - 2, trace.points - 2);
        return "events " + formatCount(first) + " to " + formatCount(Math.max(first, end));
    }

    // Everything that depends on moment, mode or search.
    update() {
        this.groups.update();
        this.segments?.update();
        this.redraw();
    }

    setMode(mode) {
        this.mode = mode;
        this.focus = this.pinned = -1;
        this.pinBox.hidden = true;
        this.update();
    }

    setFocus(band) {
        const focus = band >= 0 ? band : this.pinned;
        if (focus === this.focus) return;
        this.focus = focus;
        this.redraw();
    }

    setHovered(point, brush) {
        this.hovered = point;
        this.timeline?.drawOver(brush);
        this.map?.drawOver(brush);
    }

    choose(point, details, band = -1) {
        this.moment = point;
        this.pinned = band;
        this.focus = band;
        this.#pin(details);
        this.update();
    }

    #pin(details) {
        this.pinBox.hidden = !details;
        if (!details) return;
        this.pinBox.replaceChildren(el("div", {class: "bar"}, el("h2", {}, "Pinned"),
            el("button", {type: "button", "aria-label": "Unpin", title: "Esc", onclick: () => this.unpin()}, "×")),
        ...details.flat().filter((part) => part != null));
    }

    unpin() {
        this.pinned = this.focus = -1;
        this.pinBox.hidden = true;
        this.groups.mark();
        this.redraw();
    }

    // Pin a group of the table: its largest block at the moment, else its largest ever.
    pinGroup(group) {
        const {trace, mode, moment} = this, {size, count} = trace.allocations;
        let best = -1, bestLive = false;
        for (let i = 0; i < count; i++) {
            if (trace.groupOf(mode, i) !== group) continue;
            const live = trace.isLive(i, moment);
            if (best < 0 || (live && !bestLive) || (live === bestLive && size[i] > size[best])) {
                best = i;
                bestLive = live;
            }
        }
        if (best < 0) return;
        this.pinned = trace.bandOfGroup(mode, group);
        this.#pin([el("p", {class: "quiet"}, bestLive ? "Its largest block now" : "Its largest block; none is live now"),
            blockDetails(trace, mode, best, 40)].flat());
        this.groups.mark();
        this.setFocus(this.pinned);
    }

    goTo(point) {
        this.view.show(point);
        this.choose(point, null);
    }

    search(query) {
        const {trace} = this;
        this.marked = trace.search(query);
        if (!this.marked) {
            this.found.textContent = "";
        } else {
            let count = 0, now = 0;
            for (let i = 0; i < this.marked.length; i++) {
                if (!this.marked[i]) continue;
                count++;
                if (trace.isLive(i, this.moment)) now += trace.allocations.size[i];
            }
            this.found.textContent = count ? formatCount(count) + " blocks, " + formatBytes(now) + " at the chosen moment" : "nothing found";
        }
        this.update();
    }

    // Keys of the charts; true if used.
    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return false;
        const {view, trace} = this;
        const step = Math.max(1, Math.round(((view.toPoint(view.high) - view.toPoint(view.low)) / 200) * (event.shiftKey ? 10 : 1)));
        const oom = trace.meta.marks.at(-1);
        const actions = {ArrowLeft: () => this.step(-step), ArrowRight: () => this.step(step), ",": () => this.step(-1), ".": () => this.step(1),
            "+": () => view.zoom(0.6, this.#middle()), "=": () => view.zoom(0.6, this.#middle()), "-": () => view.zoom(1 / 0.6, this.#middle()),
            0: () => view.reset(), Home: () => this.goTo(0), End: () => this.goTo(trace.points - 1),
            p: () => this.goTo(trace.meta.summary.peak_point), o: () => oom && this.goTo(oom.event + 1), Escape: () => this.unpin()};
        const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
        action?.();
        return Boolean(action);
    }

    step(by) { this.goTo(Math.min(Math.max(this.moment + by, 0), this.trace.points - 1)); }

    #middle() {
        const share = this.view.share(this.moment);
        return share >= 0 && share <= 1 ? share : 0.5;
    }
}
