/* SPDX-License-Identifier: MIT */
/* Why an allocation failed, in words and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "report/explain.h"
#include "report/parts.h"

enum { PIN_LINES_SHOWN = 5, PINS_LISTED = 64 };

static void write_request(alloti_text *text, const alloti_explained *e)
{
    const allot_oom *const oom = e->oom;
    allot_events events;
    allot_trace_get_events(allot_history_trace(e->history), allot_history_device(e->history),
                           &events);
    alloti_text_printf(text, "  asked for      %s", alloti_size(oom->requested).text);
    if (events.stack[oom->event] != ALLOT_NONE) {
        alloti_text_printf(
            text, " at %s",
            allot_lines_text(e->lines, allot_lines_of(e->lines, events.stack[oom->event])));
    }
    alloti_text_printf(text, "\n  driver had     %s free%s\n", alloti_size(oom->device_free).text,
                       oom->is_capped ? ", enough: a limit of the process stopped it "
                                        "(set_per_process_memory_fraction?)"
                                      : "");
    alloti_text_printf(text, "  reserved       %s, of which %s are active\n",
                       alloti_size(oom->totals.reserved).text,
                       alloti_size(oom->totals.active).text);
}

/* Free bytes of the segments, and which of them a rule of the allocator keeps from this request. */
static void write_free(alloti_text *text, const allot_oom *oom)
{
    const struct {
        uint64_t size;
        const char *why;
    } kept[] = {{oom->other_stream_free, "belong to another stream"},
                {oom->other_pool_free, "belong to another memory pool (a CUDA graph's or MemPool)"},
                {oom->other_class_free, "lie in segments for requests of the other size class"}};
    alloti_text_printf(text, "  free in it     %s that this request may use, largest piece %s\n",
                       alloti_size(oom->usable_free).text, alloti_size(oom->usable_largest).text);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (kept[i].size != 0) {
            alloti_text_printf(text, "                 %s more %s\n",
                               alloti_size(kept[i].size).text, kept[i].why);
        }
    }
    if (oom->outside != 0) {
        alloti_text_printf(text, "  held outside   %s of %s: other processes, CUDA itself, NCCL\n",
                           alloti_size(oom->outside).text, alloti_size(oom->device_total).text);
    }
}

static void write_verdict(alloti_text *text, const allot_oom *oom)
{
    const uint64_t driver = oom->is_capped ? 0 : oom->device_free;
    const uint64_t free = oom->totals.free_size + driver;
    const char *const name = allot_oom_verdict_name(oom->verdict);
    const size_t column = sizeof "  verdict: . " - 1 + strlen(name);
    alloti_text_style(text, ALLOTI_STYLE_BAD, "  verdict: %s. ", name);
    switch (oom->verdict) {
    case ALLOT_OOM_FRAGMENTED:
        alloti_text_wrap_from(
            text, column, "    ",
            "%s are free in all, enough for %s, but in pieces: %s inside segments%s%s%s.",
            alloti_size(free).text, alloti_size(oom->requested).text,
            alloti_size(oom->totals.free_size).text, driver == 0 ? "" : " and ",
            driver == 0 ? "" : alloti_size(driver).text, driver == 0 ? "" : " at the driver");
        break;
    case ALLOT_OOM_SEPARATED:
        alloti_text_wrap_from(
            text, column, "    ",
            "A free piece of %s is large enough, but the allocator may not use it for "
            "this request.",
            alloti_size(oom->other_largest).text);
        break;
    case ALLOT_OOM_OUTSIDE:
        alloti_text_wrap_from(text, column, "    ",
                              "%s of the device are held by others; without them the request would "
                              "have been served.",
                              alloti_size(oom->outside).text);
        break;
    case ALLOT_OOM_EXHAUSTED:
        alloti_text_wrap_from(text, column, "    ",
                              "Only %s are free in all: %s are missing however memory is arranged. "
                              "PyTorch could reach %s%s.",
                              alloti_size(free).text,
                              alloti_size(oom->requested > free ? oom->requested - free : 0).text,
                              alloti_size(oom->totals.reserved + driver).text,
                              oom->device_total != 0
                                  ? ""
                                  : "; if the card is larger, others hold the rest (--limit tells "
                                    "its size)");
        break;
    }
}

static const char *enough(uint64_t size, const allot_oom *oom)
{
    return size >= oom->requested ? "enough" : "not enough";
}

/* The live blocks of one line, and what they stand in the way of. */
static void write_pin_line(alloti_text *text, const alloti_explained *e, const allot_pin_line *line)
{
    const bool is_one = line->block_count == 1;
    const char *const does = e->oom->pin_is_range ? (is_one ? "keeps" : "keep")
                             : is_one             ? "holds a segment in which"
                                                  : "hold segments in which";
    alloti_text_printf(text, "  ");
    alloti_text_wrap_from(text, 2, "    ", "%s, %s, allocated at %s, %s %s %s",
                          alloti_count(line->block_count, "block").text,
                          alloti_size(line->size).text, allot_lines_text(e->lines, line->line),
                          does, alloti_size(line->kept_size).text,
                          e->oom->pin_is_range ? "from merging" : "are free");
}

/* What the allocator could do for the request if the pins that matter were not there. */
static void write_pins_gone(alloti_text *text, const allot_oom *oom)
{
    const char *const without =
        oom->pin_needed == 1 && oom->pins[0].live_count == 1 ? "Without it" : "Without them";
    uint64_t size = 0;
    for (uint32_t i = 0; i < oom->pin_needed; i++) {
        size += oom->pins[i].size;
    }
    alloti_text_printf(text, "  ");
    if (oom->pin_needed == 0) {
        alloti_text_wrap_from(text, 2, "    ", "Not even without all of them would it fit.");
    } else if (oom->pin_is_range) {
        alloti_text_wrap_from(text, 2, "    ", "%s one range of %s would be free, enough for %s.",
                              without, alloti_size(size).text, alloti_size(oom->requested).text);
    } else if (oom->is_capped) {
        alloti_text_wrap_from(text, 2, "    ",
                              "%s %s of %s would go back to the driver and leave room under the "
                              "limit for %s.",
                              without, alloti_count(oom->pin_needed, "segment").text,
                              alloti_size(size).text, alloti_size(oom->requested).text);
    } else {
        alloti_text_wrap_from(text, 2, "    ",
                              "%s %s of %s would go back to the driver, which then had %s + %s = "
                              "%s, enough for %s.",
                              without, alloti_count(oom->pin_needed, "segment").text,
                              alloti_size(size).text, alloti_size(oom->device_free).text,
                              alloti_size(size).text, alloti_size(oom->device_free + size).text,
                              alloti_size(oom->requested).text);
    }
}

static void write_pins(alloti_text *text, const alloti_explained *e)
{
    const allot_oom *const oom = e->oom;
    if (oom->pin_line_count == 0 || oom->verdict == ALLOT_OOM_EXHAUSTED) {
        return;
    }
    alloti_text_printf(text, "\n");
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "in the way\n");
    for (uint32_t i = 0; i < oom->pin_line_count && i < PIN_LINES_SHOWN; i++) {
        write_pin_line(text, e, &oom->pin_lines[i]);
    }
    if (oom->pin_line_count > PIN_LINES_SHOWN) {
        alloti_text_style(text, ALLOTI_STYLE_DIM, "  and blocks of %s\n",
                          alloti_count(oom->pin_line_count - PIN_LINES_SHOWN, "more line").text);
    }
    write_pins_gone(text, oom);
}

void alloti_oom_text(alloti_text *text, const alloti_explained *e)
{
    const allot_oom *const oom = e->oom;
    write_request(text, e);
    write_free(text, oom);
    write_verdict(text, oom);
    write_pins(text, e);
    alloti_text_printf(text, "\n");
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "what would give one piece\n");
    alloti_text_printf(text, "  packing the live blocks      %s: %s\n",
                       alloti_size(oom->compacted_largest).text,
                       enough(oom->compacted_largest, oom));
    alloti_text_printf(text, "  mapping the free pages anew  %s: %s (expandable_segments:True)\n",
                       alloti_size(oom->expandable_largest).text,
                       enough(oom->expandable_largest, oom));
}

static void json_pins(alloti_json *json, const alloti_explained *e)
{
    const allot_oom *const oom = e->oom;
    alloti_json_put_u64(json, "pin_needed", oom->pin_needed);
    alloti_json_put_bool(json, "pin_is_range", oom->pin_is_range);
    alloti_json_put_u64(json, "pin_count", oom->pin_count);
    alloti_json_array_begin(json, "pins");
    uint32_t segment_count = 0;
    const allot_moment_segment *const segments = allot_moment_segments(e->moment, &segment_count);
    for (uint32_t i = 0; i < oom->pin_count && i < PINS_LISTED; i++) {
        const allot_pin *const pin = &oom->pins[i];
        alloti_json_object_begin(json, NULL);
        alloti_json_put_u64(json, "segment_address", segments[pin->segment].address);
        alloti_json_put_u64(json, "segment_size", segments[pin->segment].size);
        alloti_json_put_u64(json, "live_count", pin->live_count);
        alloti_json_put_u64(json, "live_size", pin->live_size);
        alloti_json_put_u64(json, "free", pin->free_size);
        alloti_json_put_u64(json, "size", pin->size);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
    alloti_json_array_begin(json, "pin_lines");
    for (uint32_t i = 0; i < oom->pin_line_count; i++) {
        const allot_pin_line *const line = &oom->pin_lines[i];
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "label", allot_lines_text(e->lines, line->line));
        alloti_json_put_u64(json, "block_count", line->block_count);
        alloti_json_put_u64(json, "size", line->size);
        alloti_json_put_u64(json, "kept", line->kept_size);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

void alloti_oom_json(alloti_json *json, const alloti_explained *e)
{
    const allot_oom *const oom = e->oom;
    alloti_json_object_begin(json, "oom");
    alloti_json_put_u64(json, "event", oom->event);
    alloti_json_put_string(json, "verdict", allot_oom_verdict_name(oom->verdict));
    alloti_json_put_u64(json, "requested", oom->requested);
    alloti_json_put_u64(json, "device_free", oom->device_free);
    alloti_json_put_bool(json, "is_capped", oom->is_capped);
    alloti_json_put_u64(json, "usable_free", oom->usable_free);
    alloti_json_put_u64(json, "usable_largest", oom->usable_largest);
    alloti_json_put_u64(json, "other_stream_free", oom->other_stream_free);
    alloti_json_put_u64(json, "other_pool_free", oom->other_pool_free);
    alloti_json_put_u64(json, "other_class_free", oom->other_class_free);
    alloti_json_put_u64(json, "other_largest", oom->other_largest);
    alloti_json_put_u64(json, "compacted_largest", oom->compacted_largest);
    alloti_json_put_u64(json, "expandable_largest", oom->expandable_largest);
    alloti_json_put_u64(json, "outside", oom->outside);
    json_pins(json, e);
    alloti_json_object_end(json);
}
