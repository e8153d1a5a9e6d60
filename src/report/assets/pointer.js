// What pointer, wheel and keys do on the charts of one trace: drag selects a stretch to zoom to,
// with Shift it moves the view; two fingers pinch; the wheel zooms; a click chooses a moment.

const CLICK_SLOP = 5;

function listen(surface, panel, chart) {
    const {over} = surface, {view} = panel;
    const touches = new Map();
    let drag = null, pinch = null;
    const local = (event) => {
        const box = over.getBoundingClientRect();
        return {x: event.clientX - box.left, y: event.clientY - box.top};
    };
    const bounded = (x) => Math.min(1, Math.max(0, surface.shareOf(x)));

    over.addEventListener("wheel", (event) => {
        const outside = event.deltaY > 0 && view.isFull;
        if (outside && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
        event.preventDefault();
        const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (sideways) view.pan((event.deltaX || event.deltaY) / (surface.right - surface.left));
        else view.zoom(Math.exp(Math.min(240, Math.max(-240, event.deltaY)) * 0.0025), bounded(local(event).x));
    }, {passive: false});

    over.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        over.setPointerCapture(event.pointerId);
        const at = local(event);
        touches.set(event.pointerId, at.x);
        if (touches.size === 2) {
            const [a, b] = [...touches.values()];
            pinch = {span: Math.abs(a - b), middle: bounded((a + b) / 2)};
            drag = null;
        } else {
            drag = {from: at, last: at, moved: false, pan: event.shiftKey || event.pointerType === "touch"};
        }
    });

    over.addEventListener("pointermove", (event) => {
        const at = local(event);
        if (touches.has(event.pointerId)) touches.set(event.pointerId, at.x);
        if (pinch && touches.size === 2) {
            const [a, b] = [...touches.values()];
            const span = Math.max(8, Math.abs(a - b));
            view.zoom(pinch.span / span, pinch.middle);
            pinch.span = span;
        } else if (drag) {
            const far = Math.hypot(at.x - drag.from.x, at.y - drag.from.y) > CLICK_SLOP;
            drag.moved ||= far;
            if (drag.moved && drag.pan) view.pan((drag.last.x - at.x) / (surface.right - surface.left));
            drag.last = at;
            chart.hover(null, drag.moved && !drag.pan ? [drag.from, at] : null);
        } else {
            chart.hover(at, null);
            panel.tip.move(event.clientX, event.clientY);
        }
    });

    const release = (event) => {
        touches.delete(event.pointerId);
        if (pinch) {
            if (touches.size === 0) pinch = null;
            return;
        }
        const done = drag;
        drag = null;
        if (!done || event.type === "pointercancel") return;
        chart.hover(null, null);
        if (!done.moved) {
            chart.click(done.from);
        } else if (!done.pan) {
            const shares = [bounded(done.from.x), bounded(done.last.x)].sort((a, b) => a - b);
            const span = view.high - view.low, low = view.low;
            chart.brushed?.(done.from, done.last);
            if ((shares[1] - shares[0]) * (surface.right - surface.left) > CLICK_SLOP) {
                view.set(low + span * shares[0], low + span * shares[1]);
            }
        }
    };
    over.addEventListener("pointerup", release);
    over.addEventListener("pointercancel", release);
    over.addEventListener("pointerleave", () => chart.hover(null, null));
    over.addEventListener("dblclick", () => {
        chart.reset?.();
        view.reset();
    });
    over.addEventListener("keydown", (event) => {
        if (panel.key(event)) event.preventDefault();
    });
}
