// Numbers and times as people read them, and the one way this page makes elements: text goes in as
// text, never as markup, because names in a trace come from strangers.

const KIB = 1024, MIB = 1024 ** 2, GIB = 1024 ** 3, TIB = 1024 ** 4;

// "10.29 GiB", "20.0 MiB", "512 B".
function formatBytes(bytes) {
    if (bytes < 0) return "−" + formatBytes(-bytes);
    if (bytes >= TIB) return (bytes / TIB).toFixed(2) + " TiB";
    if (bytes >= GIB) return (bytes / GIB).toFixed(2) + " GiB";
    if (bytes >= MIB) return (bytes / MIB).toFixed(1) + " MiB";
    if (bytes >= KIB) return (bytes / KIB).toFixed(1) + " KiB";
    return Math.round(bytes) + " B";
}

const formatCount = (n) => Math.round(n).toLocaleString("en-US");
const formatAddress = (n) => "0x" + n.toString(16);

// A length of time given in nanoseconds.
function formatDuration(ns) {
    if (ns >= 60e9) return Math.floor(ns / 60e9) + " min " + ((ns / 1e9) % 60).toFixed(0) + " s";
    if (ns >= 1e9) return (ns / 1e9).toFixed(2) + " s";
    if (ns >= 1e6) return (ns / 1e6).toFixed(2) + " ms";
    if (ns >= 1e3) return (ns / 1e3).toFixed(1) + " µs";
    return ns > 0 ? Math.round(ns) + " ns" : "0 s";
}

// Tick values of an axis in bytes: steps are 1, 2, 4, 8 ... of a binary unit, so labels stay short.
function byteTicks(max, count) {
    let step = 1;
    while (max / step > count) step *= 2;
    const ticks = [];
    for (let value = 0; value <= max; value += step) ticks.push(value);
    return ticks;
}

function formatTick(bytes) {
    if (bytes === 0) return "0";
    for (const [unit, name] of [[TIB, "TiB"], [GIB, "GiB"], [MIB, "MiB"], [KIB, "KiB"]]) {
        if (bytes >= unit) return +(bytes / unit).toFixed(2) + " " + name;
    }
    return bytes + " B";
}

// Tick values for counts and times: steps of 1, 2 or 5 times a power of ten.
function decimalTicks(low, high, count) {
    const raw = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-9)));
    const step = power * [1, 2, 5, 10].find((m) => power * m >= raw);
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) ticks.push(v + 0);
    return ticks;
}

// el("p", {class: "note", onclick: f}, "text", otherElement)
function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
        else if (value === true) node.setAttribute(name, "");
        else if (value !== false && value != null) node.setAttribute(name, value);
    }
    for (const child of children.flat()) {
        if (child != null) node.append(child);
    }
    return node;
}

// A group of buttons of which one is pressed.
function choice(label, options, current, pick) {
    const buttons = options.map(([value, text]) =>
        el("button", {type: "button", "data-value": value, "aria-pressed": String(value === current),
            onclick: () => {
                for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset.value === value));
                pick(value);
            }}, text));
    return el("div", {class: "choice", role: "group", "aria-label": label}, buttons);
}
