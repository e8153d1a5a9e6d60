// The stretch of the x axis that all charts of one trace show, in events or in time.

class View {
    constructor(trace, changed) {
        this.trace = trace;
        this.changed = changed;
        this.axis = "event";
        this.reset();
    }

    get full() {
        return this.axis === "event" ? [0, this.trace.points]
            : [0, Math.max(1, this.trace.timeAt(this.trace.points))];
    }

    get isFull() {
        const [low, high] = this.full;
        return this.low <= low && this.high >= high;
    }

    toPoint(value) { return this.axis === "event" ? value : this.trace.pointAt(value); }
    fromPoint(point) { return this.axis === "event" ? point : this.trace.timeAt(point); }

    // Position of a point as a share of the width; a state fills the room from its point to the next.
    share(point) { return (this.fromPoint(point) - this.low) / (this.high - this.low); }
    pointAtShare(share) {
        const point = this.toPoint(this.low + (this.high - this.low) * share);
        return Math.min(Math.max(Math.floor(point + 1e-9), 0), this.trace.points - 1);
    }

    edges(width) {
        const out = new Float64Array(width + 1);
        for (let x = 0; x <= width; x++) out[x] = this.toPoint(this.low + ((this.high - this.low) * x) / width);
        return out;
    }

    set(low, high) {
        const [first, last] = this.full;
        const least = this.axis === "event" ? Math.min(16, last) : Math.min(1000, last);
        const span = Math.min(Math.max(high - low, least), last - first);
        low = Math.min(Math.max(low - Math.max(0, span - (high - low)) / 2, first), last - span);
        this.low = low;
        this.high = low + span;
        this.changed?.();
    }

    reset() {
        [this.low, this.high] = this.full;
        this.changed?.();
    }

    zoom(factor, share) {
        const middle = this.low + (this.high - this.low) * share;
        this.set(middle - (middle - this.low) * factor, middle + (this.high - middle) * factor);
    }

    pan(share) {
        const step = (this.high - this.low) * share;
        const [first, last] = this.full;
        const bounded = Math.min(Math.max(step, first - this.low), last - this.high);
        this.set(this.low + bounded, this.high + bounded);
    }

    // Bring a point into sight without changing the zoom.
    show(point) {
        const share = this.share(point);
        if (share < 0.02 || share > 0.98) this.pan(share - 0.5);
    }

    setAxis(axis) {
        const low = this.toPoint(this.low), high = this.toPoint(this.high), all = this.isFull;
        this.axis = axis;
        if (all) this.reset();
        else this.set(this.fromPoint(low), this.fromPoint(high));
    }
}
