// The data of the page: base64 of a zlib stream that holds the length of a JSON header, the header,
// and columns of numbers. docs/html.md describes it.

async function unpack(base64) {
    const text = atob(base64.trim());
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    return {header, columns: bytes.subarray(4 + length)};
}

// One column: LEB128 numbers below 2^53; with `delta`, zigzag differences to the previous number.
function readColumn(columns, ref) {
    const out = new Float64Array(ref.n);
    let at = ref.at, sum = 0;
    for (let i = 0; i < ref.n; i++) {
        let byte = columns[at++], value = byte & 127, scale = 128;
        while (byte > 127) {
            byte = columns[at++];
            value += (byte & 127) * scale;
            scale *= 128;
        }
        if (ref.delta) {
            sum += value % 2 ? -(value + 1) / 2 : value / 2;
            value = sum;
        }
        out[i] = value;
    }
    return out;
}
