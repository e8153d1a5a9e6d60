/* SPDX-License-Identifier: MIT */
/* Whole pages: of small traces of every shape, and with every allocation failing once. */
#include <allot/html.h>

#include <stdlib.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"

#define ALLOC(addr, size)                                                                          \
    "{\"action\":\"alloc\",\"addr\":" addr ",\"size\":" size ",\"stream\":0,\"time_us\":5,"        \
    "\"frames\":[{\"name\":\"step\",\"filename\":\"train.py\",\"line\":7}]}"
#define FREE(addr, size)                                                                           \
    "{\"action\":\"free_requested\",\"addr\":" addr ",\"size\":" size ",\"stream\":0},"            \
    "{\"action\":\"free_completed\",\"addr\":" addr ",\"size\":" size ",\"stream\":0}"
#define SEGMENT "{\"action\":\"segment_alloc\",\"addr\":2097152,\"size\":20971520,\"stream\":0}"

static const char TRACE[] =
    "{\"segments\":[],\"device_traces\":[[" SEGMENT
    "," ALLOC("2097152", "8388608") "," ALLOC("10485760", "4194304") "," FREE(
        "2097152", "8388608") ",{\"action\":\"oom\",\"device_free\":0,"
                              "\"size\":16777216,\"stream\":0}]]}";
static const char STATE[] =
    "{\"segments\":[{\"device\":0,\"address\":2097152,\"total_size\":2097152,\"stream\":0,"
    "\"segment_type\":\"small\",\"allocated_size\":512,\"active_size\":512,\"blocks\":["
    "{\"address\":2097152,\"size\":512,\"requested_size\":500,\"state\":\"active_allocated\"},"
    "{\"address\":2097664,\"size\":2096640,\"requested_size\":0,\"state\":\"inactive\"}]}],"
    "\"device_traces\":[[]]}";

typedef struct counted {
    uint64_t size;
    uint64_t room; /* bytes taken before the sink fails */
} counted;

static allot_status count_bytes(void *context, const void *data, size_t size)
{
    (void)data;
    counted *const self = context;
    self->size += size;
    return self->size <= self->room ? ALLOT_STATUS_OK : ALLOT_STATUS_IO;
}

/** Read a trace and write one page of it. */
static allot_status write_page(const char *text, uint32_t event, counted *out)
{
    allot_trace *trace = NULL;
    allot_history *history = NULL;
    const allot_sink sink = {.write = count_bytes, .context = out};
    const allot_html_options options = {
        .struct_size = sizeof options, .name = "folder/run.json", .block_max = 1};
    allot_status status = allot_trace_read_memory(text, strlen(text), "run.json", NULL, &trace);
    if (status == ALLOT_STATUS_OK) {
        status = allot_history_create(trace, allot_trace_main_device(trace), NULL, &history);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_html_explain(history, event, &options, &sink);
    }
    allot_history_destroy(history);
    allot_trace_destroy(trace);
    return status;
}

static void pages_of_every_moment_are_written(void)
{
    static const uint32_t EVENTS[] = {ALLOT_NONE, 0, 2, 5};
    for (unsigned i = 0; i < sizeof EVENTS / sizeof EVENTS[0]; i++) {
        counted out = {.room = UINT64_MAX};
        REQUIRE_OK(write_page(TRACE, EVENTS[i], &out));
        CHECK(out.size > 20000);
    }
}

static void a_trace_without_events_has_a_page(void)
{
    counted out = {.room = UINT64_MAX};
    CHECK_OK(write_page(STATE, ALLOT_NONE, &out));
}

/** Tell a story, around a trace or without one. */
static allot_status tell(const char *text, const allot_html_story *story, counted *out)
{
    allot_trace *trace = NULL;
    allot_history *history = NULL;
    const allot_sink sink = {.write = count_bytes, .context = out};
    const allot_html_options options = {.struct_size = sizeof options, .name = "run.py"};
    allot_status status = ALLOT_STATUS_OK;
    if (text != NULL) {
        status = allot_trace_read_memory(text, strlen(text), "run.json", NULL, &trace);
    }
    if (text != NULL && status == ALLOT_STATUS_OK) {
        status = allot_history_create(trace, allot_trace_main_device(trace), NULL, &history);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_html_tell(history, 2, story, &options, &sink);
    }
    allot_history_destroy(history);
    allot_trace_destroy(trace);
    return status;
}

static const allot_html_fact FACTS[] = {{"headroom", "1.2 GiB", NULL}, {NULL, NULL, "nothing"}};
static const allot_html_facts TABLES[] = {{"This run", FACTS, 2, true}, {"Empty", NULL, 0, false}};
static const char *const SENTENCES[] = {"It did not.", NULL};
static const uint64_t EVENTS[] = {0, 2};
static const uint64_t BYTES[] = {4096, 8192};
static const allot_html_series SERIES[] = {{"reserved", EVENTS, BYTES, 2}, {NULL, NULL, NULL, 0}};
static const uint64_t SEGMENTS[] = {0, 4096};
static const allot_html_span SPANS[] = {{0, 1024}, {4096, 8192}};
static const allot_html_map MAPS[] = {
    {.title = "Now",
     .size = 8192,
     .segments = SEGMENTS,
     .spans = SPANS,
     .segment_count = 2,
     .span_count = 2},
    {.size = 0},
};
static const allot_html_story STORY = {.struct_size = sizeof STORY,
                                       .verb = "dryrun",
                                       .level = "good",
                                       .headline = "It fits",
                                       .sentences = SENTENCES,
                                       .sentence_count = 2,
                                       .tables = TABLES,
                                       .table_count = 2,
                                       .series_title = "Memory",
                                       .series = SERIES,
                                       .series_count = 2,
                                       .maps = MAPS,
                                       .map_count = 2};

static void a_story_is_told_with_and_without_a_history(void)
{
    counted alone = {.room = UINT64_MAX};
    counted with = {.room = UINT64_MAX};
    REQUIRE_OK(tell(NULL, &STORY, &alone));
    REQUIRE_OK(tell(TRACE, &STORY, &with));
    CHECK(alone.size > 20000);
    CHECK(with.size > alone.size);
    allot_html_story bare = STORY;
    bare.map_count = 0;
    counted less = {.room = UINT64_MAX};
    REQUIRE_OK(tell(NULL, &bare, &less));
    CHECK(alone.size > less.size);
}

static void a_picture_of_many_pieces_stays_small(void)
{
    enum { PIECES = 400000 };
    allot_html_span *const spans = calloc(PIECES, sizeof *spans);
    REQUIRE(spans != NULL);
    for (uint64_t i = 0; i < PIECES; i++) {
        spans[i] = (allot_html_span){i << 20, (i << 20) + (i * 7919 % 1000 + 1)};
    }
    const allot_html_map map = {
        .title = "Many", .size = (uint64_t)PIECES << 20, .spans = spans, .span_count = PIECES};
    allot_html_story story = STORY;
    story.maps = &map;
    story.map_count = 1;
    counted few = {.room = UINT64_MAX};
    counted many = {.room = UINT64_MAX};
    REQUIRE_OK(tell(NULL, &STORY, &few));
    REQUIRE_OK(tell(NULL, &story, &many));
    CHECK(many.size - few.size < 600000); /* 1.5 bytes a piece */
    free(spans);
}

static void a_story_that_lacks_something_is_refused(void)
{
    counted out = {.room = UINT64_MAX};
    allot_html_story story = STORY;
    story.level = "splendid";
    CHECK_EQ(tell(NULL, &story, &out), ALLOT_STATUS_INVALID);
    story = STORY;
    story.headline = NULL;
    CHECK_EQ(tell(NULL, &story, &out), ALLOT_STATUS_INVALID);
    CHECK_EQ(tell(NULL, NULL, &out), ALLOT_STATUS_INVALID);
    CHECK_EQ(out.size, 0);
}

static void a_full_disk_is_handed_through(void)
{
    for (uint64_t room = 0; room < 40000; room += 1999) {
        counted out = {.room = room};
        CHECK_EQ(write_page(TRACE, 5, &out), ALLOT_STATUS_IO);
    }
}

static allot_status write_once(void *context)
{
    (void)context;
    counted out = {.room = UINT64_MAX};
    return write_page(TRACE, 5, &out);
}

static allot_status tell_once(void *context)
{
    (void)context;
    counted out = {.room = UINT64_MAX};
    return tell(TRACE, &STORY, &out);
}

static void every_failing_allocation_is_reported(void)
{
    CHECK(alloc_fault_each(write_once, NULL) > 30);
    CHECK(alloc_fault_each(tell_once, NULL) > 30);
}

static const check_test TESTS[] = {
    {"pages_of_every_moment_are_written", pages_of_every_moment_are_written},
    {"a_trace_without_events_has_a_page", a_trace_without_events_has_a_page},
    {"a_story_is_told_with_and_without_a_history", a_story_is_told_with_and_without_a_history},
    {"a_picture_of_many_pieces_stays_small", a_picture_of_many_pieces_stays_small},
    {"a_story_that_lacks_something_is_refused", a_story_that_lacks_something_is_refused},
    {"a_full_disk_is_handed_through", a_full_disk_is_handed_through},
    {"every_failing_allocation_is_reported", every_failing_allocation_is_reported},
};
CHECK_MAIN(TESTS)
