// What a page may tell beside its trace: lines over the events, and pictures of memory to one scale.

function seriesCard(header, columns, tip) {
    const title = header.series_title;
    const lines = header.series.map((line, n) => ({...line, recorded: n === 0})); // The first is drawn in ink.
    const compare = new Compare(header.traces[0], lines, columns, tip, {what: title, label: title});
    const marks = compare.lines.map((line, n) => {
        const mark = swatch("transparent");
        const button = el("button", {type: "button", "aria-pressed": String(line.shown), title: "Show or hide its line",
            onclick: () => button.setAttribute("aria-pressed", String(compare.toggle(n)))}, mark, " " + line.name);
        return {mark, button};
    });
    const node = el("section", {class: "card"}, el("h2", {}, title),
        el("div", {class: "tools"}, el("div", {class: "choice", role: "group", "aria-label": "Lines"}, marks.map(({button}) => button))), compare.node);
    return {node, draw() {
        marks.forEach(({mark}, n) => { mark.style.background = compare.color(n); });
        compare.draw();
    }};
}

// Memory line by line, as text is written: used is dark, free is pale, what is not held is left out.
// A notch stands where a segment begins.
class Picture {
    constructor(map, columns, scale) {
        this.title = map.title;
        this.size = map.size;
        this.scale = scale;
        this.segments = readColumn(columns, map.segments);
        this.spans = readColumn(columns, map.spans);
        this.rows = Math.max(1, Math.ceil((Picture.ROWS * map.size) / scale));
        this.surface = new Surface(this.rows * Picture.STEP + 4, map.title + ": " + formatBytes(map.size));
        this.surface.over.tabIndex = -1;
        this.node = this.surface.node;
    }

    // Calls part(x, row, width) for each row that bytes [begin, end) lie in.
    #each(begin, end, part) {
        const wide = this.surface.right - 4, bytes = this.scale / Picture.ROWS;
        for (let row = Math.floor(begin / bytes); row * bytes < end && row < this.rows; row++) {
            const from = Math.max(begin, row * bytes) - row * bytes, to = Math.min(end, (row + 1) * bytes) - row * bytes;
            part(4 + (wide * from) / bytes, row * Picture.STEP + 2, (wide * (to - from)) / bytes);
        }
    }

    draw() {
        const {surface} = this;
        if (!surface.fit()) return;
        const g = surface.context(surface.base), tall = Picture.STEP - 4;
        const fill = (begin, end, color) => {
            g.fillStyle = color;
            this.#each(begin, end, (x, y, width) => g.fillRect(x, y, width, tall));
        };
        fill(0, this.size, palette.held);
        for (let i = 0; i < this.spans.length; i += 2) fill(this.spans[i], this.spans[i + 1], palette.hues[0]);
        g.fillStyle = palette.ink;
        for (const begin of this.segments) this.#each(begin, begin + 1, (x, y) => g.fillRect(x - 0.5, y - 1, 1, tall + 2));
    }
}
Picture.ROWS = 16;
Picture.STEP = 14;

function picturesCard(header, columns) {
    const scale = Math.max(1, ...header.maps.map((map) => map.size));
    const pictures = header.maps.map((map) => new Picture(map, columns, scale));
    const legend = el("p", {class: "legend"}, el("span", {class: "key used"}, "in use"), el("span", {class: "key held"}, "held and free"),
        el("span", {}, "a line holds " + formatBytes(scale / Picture.ROWS) + "; notches: segments"));
    const node = el("section", {class: "card pictures"}, el("h2", {}, "Pictures of memory"), legend,
        pictures.map((picture) => [el("h3", {}, picture.title + ", " + formatBytes(picture.size)), picture.node]).flat());
    return {node, draw() { for (const picture of pictures) picture.draw(); }};
}
