// What a chart of `width` columns shows of a stretch of points: for each column the point where most
// was allocated in it, and how that divides into bands. Every column is thus a state that existed,
// and no peak is lost at any zoom.
//
// Short stretches are counted exactly, event by event. Long ones use the buckets that were computed
// when the report was written, which keep the same promise.

const EXACT_POINTS = 200000;

function sampleColumns(trace, mode, edges) {
    const width = edges.length - 1;
    const bands = trace.series[mode].length;
    const out = {width, bands, at: new Int32Array(width), total: new Float64Array(width),
        low: new Float64Array(width), reserved: new Float64Array(width), parts: new Float64Array(width * bands)};
    if (edges[width] - edges[0] <= EXACT_POINTS) sampleExact(trace, mode, edges, out);
    else sampleBuckets(trace, mode, edges, out);
    sampleReserved(trace, edges, out);
    return out;
}

const clampPoint = (trace, value) => Math.min(Math.max(Math.floor(value), 0), trace.points - 1);

function sampleExact(trace, mode, edges, out) {
    const {start, end, size, count} = trace.allocations;
    const band = trace.seriesOf[mode], now = new Float64Array(out.bands);
    let point = clampPoint(trace, edges[0]), total = 0;
    let started = upperBound(start, point);
    for (let i = 0; i < started; i++) {
        if (end[i] > point) {
            now[band[i]] += size[i];
            total += size[i];
        }
    }
    let ended = firstEndAfter(trace, point);
    const advance = (to) => {
        for (; ended < count && end[trace.byEnd[ended]] <= to; ended++) {
            const i = trace.byEnd[ended];
            if (start[i] < end[i] && start[i] <= point) {
                now[band[i]] -= size[i];
                total -= size[i];
            }
        }
        for (; started < count && start[started] <= to; started++) {
            if (end[started] > to) {
                now[band[started]] += size[started];
                total += size[started];
            }
        }
        point = to;
    };
    const small = (p) => trace.lod.small ? trace.lod.small[bucketOf(trace, p)] : 0;
    for (let x = 0; x < out.width; x++) {
        const first = clampPoint(trace, edges[x]);
        const last = Math.max(first, Math.min(Math.ceil(edges[x + 1]) - 1, trace.points - 1));
        let best = -1, low = Infinity;
        for (let p = first; p <= last; p++) {
            if (p > point) advance(p);
            const value = total + small(p);
            if (value < low) low = value;
            if (value > best) {
                best = value;
                out.at[x] = p;
                out.parts.set(now, x * out.bands);
                out.parts[x * out.bands + out.bands - 1] += small(p);
            }
        }
        out.total[x] = best;
        out.low[x] = low;
    }
}

function firstEndAfter(trace, point) {
    let low = 0, high = trace.byEnd.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (trace.allocations.end[trace.byEnd[middle]] <= point) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Bucket b covers the points from ceil(b * points / buckets) on.
function bucketOf(trace, point) {
    return Math.min(trace.lod.at.length - 1, Math.floor((point * trace.lod.at.length) / trace.points));
}

function sampleBuckets(trace, mode, edges, out) {
    const {at, total, low} = trace.lod;
    for (let x = 0; x < out.width; x++) {
        const first = bucketOf(trace, clampPoint(trace, edges[x]));
        const last = Math.max(first, bucketOf(trace, clampPoint(trace, edges[x + 1] - 1e-6)));
        let best = first, least = low[first];
        for (let b = first + 1; b <= last; b++) {
            if (total[b] > total[best]) best = b;
            if (low[b] < least) least = low[b];
        }
        out.at[x] = at[best];
        out.total[x] = total[best];
        out.low[x] = least;
        trace.series[mode].forEach((band, k) => { out.parts[x * out.bands + k] = band.values[best]; });
    }
}

function sampleReserved(trace, edges, out) {
    const {point, bytes} = trace.reserved;
    let i = upperBound(point, Math.floor(edges[0])) - 1;
    for (let x = 0; x < out.width; x++) {
        let value = i < 0 ? 0 : bytes[i];
        for (; i + 1 < point.length && point[i + 1] < Math.max(edges[x + 1], Math.floor(edges[x]) + 1); i++) {
            value = Math.max(value, bytes[i + 1]);
        }
        out.reserved[x] = value;
    }
}

// Bytes of the marked allocations at each column's point.
function sampleMarked(trace, marked, at) {
    const {start, end, size, count} = trace.allocations;
    const out = new Float64Array(at.length + 1);
    for (let i = 0; i < count; i++) {
        if (marked[i]) {
            out[lowerBound(at, start[i])] += size[i];
            out[lowerBound(at, end[i])] -= size[i];
        }
    }
    for (let x = 1; x < out.length; x++) out[x] += out[x - 1];
    return out;
}
