// The whole trace in a strip: what is shown above is the bright part; drag it, or its edges.

class Strip {
    constructor(panel) {
        this.panel = panel;
        this.surface = new Surface(40, "The whole trace; drag to move the part that is shown");
        this.node = this.surface.node;
        this.node.classList.add("strip");
        this.surface.over.tabIndex = -1;
        let grip = null;
        const over = this.surface.over;
        over.addEventListener("pointerdown", (event) => {
            over.setPointerCapture(event.pointerId);
            const share = this.#share(event), [low, high] = this.#shown();
            const near = 8 / (this.surface.right - this.surface.left);
            const whole = panel.view.isFull;
            const kind = Math.abs(share - low) < near ? "low" : Math.abs(share - high) < near ? "high"
                : share > low && share < high && !whole ? "both" : "new";
            grip = {kind, from: share, low, high};
        });
        over.addEventListener("pointermove", (event) => {
            if (!grip) return;
            const share = this.#share(event), step = share - grip.from;
            if (grip.kind === "low") this.#set(share, grip.high);
            else if (grip.kind === "high") this.#set(grip.low, share);
            else if (grip.kind === "new") this.#set(grip.from, share);
            else this.#set(grip.low + step, grip.high + step);
        });
        over.addEventListener("pointerup", () => { grip = null; });
        over.addEventListener("dblclick", () => panel.view.reset());
    }

    #share(event) {
        const box = this.surface.over.getBoundingClientRect();
        return Math.min(1, Math.max(0, this.surface.shareOf(event.clientX - box.left)));
    }

    #shown() {
        const {view} = this.panel, [first, last] = view.full;
        return [(view.low - first) / (last - first), (view.high - first) / (last - first)];
    }

    #set(a, b) {
        const {view} = this.panel, [first, last] = view.full;
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        const shift = low < 0 ? -low : high > 1 ? 1 - high : 0;
        view.set(first + (last - first) * (low + shift), first + (last - first) * (high + shift));
    }

    // The whole trace as columns; kept until axis or width change.
    #whole(axis, width) {
        if (this.kept?.axis !== axis || this.kept.width !== width) {
            const {trace} = this.panel, whole = new View(trace, null);
            if (axis === "time") whole.setAxis("time");
            this.kept = {axis, width, whole, samples: sampleColumns(trace, "category", whole.edges(width))};
        }
        return this.kept;
    }

    draw() {
        const {surface, panel} = this, {trace, view} = panel;
        const g = surface.context(surface.base), {ratio, left, right, height} = surface;
        const {whole, samples} = this.#whole(view.axis, surface.plotPixels);
        let high = 1;
        for (let x = 0; x < samples.width; x++) high = Math.max(high, samples.reserved[x], samples.total[x]);
        for (const [values, color] of [[samples.reserved, palette.held], [samples.total, palette.soft]]) {
            g.fillStyle = color;
            for (let x = 0; x < samples.width; x++) {
                const tall = ((height - 4) * values[x]) / high;
                g.fillRect(left + x / ratio, height - 2 - tall, 1 / ratio, tall);
            }
        }
        for (const mark of trace.meta.marks) {
            verticalLine(g, surface.xOf(whole.share(mark.event + 1)), 0, height, palette.bad, 1.5);
        }
        const [low, top] = this.#shown();
        g.fillStyle = palette.card;
        g.globalAlpha = 0.72;
        g.fillRect(left, 0, (right - left) * low, height);
        g.fillRect(surface.xOf(top), 0, right - surface.xOf(top), height);
        g.globalAlpha = 1;
        g.strokeStyle = palette.accent;
        g.lineWidth = 1.5;
        g.strokeRect(surface.xOf(low) + 0.75, 0.75, Math.max(2, (right - left) * (top - low) - 1.5), height - 1.5);
    }
}
