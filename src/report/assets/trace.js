// One recorded trace: allocations, segments, stacks and groups, and questions about them.
//
// A point is a state: point 0 is before the first event, point p is after event p - 1. An allocation
// lives from its start to just before its end; one that is never freed ends after the last point.

const MODES = ["line", "stack", "category"];

// First index in sorted `array` whose value is >= `value`.
function lowerBound(array, value) {
    let low = 0, high = array.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (array[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// How many values of sorted `array` are <= `value`.
function upperBound(array, value) {
    let low = 0, high = array.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (array[middle] <= value) low = middle + 1;
        else high = middle;
    }
    return low;
}

class Trace {
    constructor(meta, columns) {
        this.meta = meta;
        this.points = meta.event_count + 1;
        const read = (ref) => readColumn(columns, ref);
        const all = (table) => Object.fromEntries(Object.entries(table).map(([k, r]) => [k, read(r)]));
        meta.categories = meta.categories.map((name) => name.replaceAll("_", " "));
        this.strings = meta.strings;
        this.frames = all(meta.frames);
        const stacks = all(meta.stacks);
        this.stackLine = stacks.line;
        this.stackFrames = stacks.frames;
        this.stackStart = new Float64Array(stacks.size.length + 1);
        stacks.size.forEach((n, i) => { this.stackStart[i + 1] = this.stackStart[i] + n; });
        this.lines = meta.lines.map((text) => {
            const parts = /^(.*) \((.*)\)$/.exec(text);
            return parts ? {title: parts[1], place: parts[2]} : {title: text, place: ""};
        });
        this.allocations = this.#withEnds(all(meta.allocations));
        this.segments = this.#withEnds(all(meta.segments));
        this.reserved = all(meta.reserved);
        this.lod = {at: read(meta.lod.at), total: read(meta.lod.total), low: read(meta.lod.low),
            small: meta.lod.small ? read(meta.lod.small) : null};
        this.time = meta.time ? read(meta.time.ns) : null;
        this.seriesOf = {};
        this.series = {};
        for (const mode of MODES) this.#makeSeries(mode, read(meta.lod[mode].values));
        this.#orderEnds();
    }

    #withEnds(table) {
        table.end = table.start.map((start, i) => start + table.life[i]);
        table.count = table.start.length;
        return table;
    }

    // The largest groups have a band each, lowest mean last; the rest share the band "other".
    #makeSeries(mode, values) {
        const groups = this.meta.lod[mode].groups;
        const buckets = this.lod.at.length;
        const bands = groups.map((group, i) => {
            const part = values.subarray(i * buckets, (i + 1) * buckets);
            let sum = 0;
            for (const value of part) sum += value;
            return {group, values: part, sum};
        });
        bands.sort((a, b) => b.sum - a.sum);
        const rest = this.lod.total.slice();
        for (const band of bands) band.values.forEach((v, b) => { rest[b] -= v; });
        bands.push({group: -1, values: rest});
        const bandOf = new Map(bands.map((band, i) => [band.group, i]));
        const index = new Uint8Array(this.allocations.count);
        const other = bands.length - 1;
        for (let i = 0; i < index.length; i++) index[i] = bandOf.get(this.groupOf(mode, i)) ?? other;
        this.series[mode] = bands;
        this.seriesOf[mode] = index;
    }

    #orderEnds() {
        const order = new Uint32Array(this.allocations.count);
        for (let i = 0; i < order.length; i++) order[i] = i;
        const end = this.allocations.end;
        this.byEnd = order.sort((a, b) => end[a] - end[b]);
    }

    groupOf(mode, i) {
        const {stack, category} = this.allocations;
        return mode === "category" ? category[i] : mode === "stack" ? stack[i] : this.stackLine[stack[i]];
    }

    groupCount(mode) {
        return mode === "category" ? this.meta.categories.length
            : mode === "stack" ? this.stackLine.length : this.lines.length;
    }

    bandOfGroup(mode, group) {
        const found = this.series[mode].findIndex((band) => band.group === group);
        return found < 0 ? this.series[mode].length - 1 : found;
    }

    // {title, place} of a frame: function, and file name with line.
    frameText(frame) {
        const name = this.strings[this.frames.name[frame]] || "";
        const file = this.strings[this.frames.file[frame]] || "";
        const line = this.frames.line[frame];
        const short = file.split(/[\\/]/).pop();
        return {name, file, short: line ? short + ":" + line : short, internal: this.frames.internal[frame] === 1};
    }

    stackOf(stack) {
        return this.stackFrames.subarray(this.stackStart[stack], this.stackStart[stack + 1]);
    }

    // What a group is called: {title, place}.
    groupText(mode, group) {
        if (group < 0) return {title: "everything else", place: ""};
        if (mode === "category") return {title: this.meta.categories[group], place: ""};
        if (mode === "line") return this.lines[group];
        const {title, place} = this.lines[this.stackLine[group]];
        const users = [...this.stackOf(group)].map((f) => this.frameText(f)).filter((f) => !f.internal);
        return {title: title + (users.length > 1 ? " ← " + users[1].short : ""), place: place + " · stack " + group};
    }

    // Nanoseconds since the first event, at a point that may be fractional.
    timeAt(point) {
        const at = Math.min(Math.max(point - 1, 0) / this.meta.time.every, this.time.length - 1);
        const i = Math.min(Math.floor(at), this.time.length - 2);
        if (i < 0) return this.time[0] || 0;
        return this.time[i] + (this.time[i + 1] - this.time[i]) * (at - i);
    }

    // The inverse: point at a time.
    pointAt(ns) {
        const i = Math.min(Math.max(lowerBound(this.time, ns), 1), this.time.length - 1);
        const from = this.time[i - 1], to = this.time[i];
        const part = to > from ? Math.min(1, Math.max(0, (ns - from) / (to - from))) : 1;
        return (i - 1 + part) * this.meta.time.every + 1;
    }

    reservedAt(point) {
        const i = upperBound(this.reserved.point, point) - 1;
        return i < 0 ? 0 : this.reserved.bytes[i];
    }

    isLive(i, point) {
        return this.allocations.start[i] <= point && point < this.allocations.end[i];
    }

    liveAt(point) {
        const live = [];
        const count = upperBound(this.allocations.start, point);
        for (let i = 0; i < count; i++) {
            if (this.allocations.end[i] > point) live.push(i);
        }
        return live;
    }

    // Per group of a mode: bytes and blocks at a point.
    groupsAt(mode, point) {
        const bytes = new Float64Array(this.groupCount(mode));
        const blocks = new Uint32Array(bytes.length);
        let total = 0;
        for (const i of this.liveAt(point)) {
            const group = this.groupOf(mode, i);
            bytes[group] += this.allocations.size[i];
            blocks[group]++;
            total += this.allocations.size[i];
        }
        return {bytes, blocks, total};
    }

    // Per group of a mode: the most it ever held. Made once.
    groupPeaks(mode) {
        this.peaks ??= {};
        if (this.peaks[mode]) return this.peaks[mode];
        const {start, end, size, count} = this.allocations;
        const now = new Float64Array(this.groupCount(mode)), peak = new Float64Array(now.length);
        let freed = 0;
        for (let i = 0; i < count; i++) {
            for (; freed < count && end[this.byEnd[freed]] <= start[i]; freed++) {
                now[this.groupOf(mode, this.byEnd[freed])] -= size[this.byEnd[freed]];
            }
            const group = this.groupOf(mode, i);
            now[group] += size[i];
            if (now[group] > peak[group]) peak[group] = now[group];
        }
        return this.peaks[mode] = peak;
    }

    // Which allocations match all words of a query, in function, file, file:line or category.
    // NULL for an empty query.
    search(query) {
        const words = query.toLowerCase().split(/\s+/).filter(Boolean);
        if (!words.length) return null;
        this.frameWords ??= Array.from(this.frames.name, (_, f) => {
            const t = this.frameText(f);
            return (t.name + " " + t.file + ":" + this.frames.line[f]).toLowerCase();
        });
        const {stack, category, count} = this.allocations;
        const out = new Uint8Array(count).fill(1);
        for (const word of words) {
            const frameHit = this.frameWords.map((text) => text.includes(word));
            const stackHit = Array.from(this.stackLine, (_, s) => this.stackOf(s).some((f) => frameHit[f]));
            const categoryHit = this.meta.categories.map((name) => name.includes(word));
            for (let i = 0; i < count; i++) {
                if (!stackHit[stack[i]] && !categoryHit[category[i]]) out[i] = 0;
            }
        }
        return out;
    }
}
