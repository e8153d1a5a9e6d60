/* SPDX-License-Identifier: MIT */
/* Sums of live allocations by line, stack, category, stream or pool. */
#include <stdlib.h>
#include <string.h>

#include <allot/explain.h>

#include "core/array.h"
#include "core/map64.h"

const char *allot_group_name(allot_group_by by)
{
    switch (by) {
#define GROUP_NAME(name, value, spelling)                                                          \
    case ALLOT_GROUP_##name:                                                                       \
        return spelling;
        ALLOT_GROUP_LIST(GROUP_NAME)
#undef GROUP_NAME
    }
    return "unknown";
}

allot_status allot_group_parse(const char *name, allot_group_by *out)
{
#define GROUP_PARSE(constant, value, spelling)                                                     \
    if (strcmp(name, spelling) == 0) {                                                             \
        *out = ALLOT_GROUP_##constant;                                                             \
        return ALLOT_STATUS_OK;                                                                    \
    }
    ALLOT_GROUP_LIST(GROUP_PARSE)
#undef GROUP_PARSE
    return alloti_fail(ALLOT_STATUS_INVALID,
                       "grouping \"%s\": expected line, stack, category, stream or pool", name);
}

/** A group while it grows. */
typedef struct sums {
    uint64_t by_category[ALLOT_CATEGORY_COUNT];
} sums;

typedef struct grouping {
    allot_allocations table;
    allot_group_by by;
    const allot_lines *lines;
    const uint8_t *categories; /**< NULL: none. */
    alloti_map64 index;
    allot_group *items;
    uint64_t count;
    uint64_t capacity;
    sums *sums;
    uint64_t sums_capacity;
} grouping;

static uint8_t category_of(const grouping *g, uint32_t row)
{
    const uint8_t category = g->categories == NULL ? g->table.category[row] : g->categories[row];
    return category < ALLOT_CATEGORY_COUNT ? category : ALLOT_CATEGORY_UNKNOWN;
}

static uint32_t key_of(const grouping *g, uint32_t row)
{
    switch (g->by) {
    case ALLOT_GROUP_LINE:
        return allot_lines_of(g->lines, g->table.stack[row]);
    case ALLOT_GROUP_STACK:
        return g->table.stack[row];
    case ALLOT_GROUP_CATEGORY:
        return category_of(g, row);
    case ALLOT_GROUP_STREAM:
        return g->table.stream[row];
    default:
        return g->table.pool[row];
    }
}

static allot_status group_of(grouping *g, uint32_t row, uint32_t *out)
{
    const uint32_t key = key_of(g, row);
    *out = alloti_map64_get(&g->index, key);
    if (*out != ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    allot_status status =
        alloti_array_reserve(&g->items, &g->capacity, g->count + 1, sizeof *g->items);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&g->sums, &g->sums_capacity, g->count + 1, sizeof *g->sums);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *out = (uint32_t)g->count;
    g->items[g->count] = (allot_group){.key = key, .example = row};
    g->sums[g->count] = (sums){0};
    g->count++;
    return alloti_map64_set(&g->index, key, *out);
}

static allot_status add(grouping *g, uint32_t row)
{
    uint32_t index = 0;
    const allot_status status = group_of(g, row, &index);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_group *const group = &g->items[index];
    group->size += g->table.size[row];
    group->count++;
    if (g->table.size[row] > g->table.size[group->example]) {
        group->example = row;
    }
    g->sums[index].by_category[category_of(g, row)] += g->table.size[row];
    return ALLOT_STATUS_OK;
}

static uint8_t main_category(const sums *s)
{
    uint8_t best = 0;
    for (uint8_t c = 1; c < ALLOT_CATEGORY_COUNT; c++) {
        best = s->by_category[c] > s->by_category[best] ? c : best;
    }
    return best;
}

static int compare_group(const void *a, const void *b)
{
    const allot_group *const left = a;
    const allot_group *const right = b;
    if (left->size != right->size) {
        return left->size < right->size ? 1 : -1;
    }
    return (left->key > right->key) - (left->key < right->key);
}

static void finish(grouping *g, uint64_t active, allot_groups *out)
{
    for (uint64_t i = 0; i < g->count; i++) {
        const uint64_t most = g->sums[i].by_category[main_category(&g->sums[i])];
        g->items[i].category = main_category(&g->sums[i]);
        g->items[i].category_share =
            g->items[i].size == 0 ? 1 : (double)most / (double)g->items[i].size;
        g->items[i].share = active == 0 ? 0 : (double)g->items[i].size / (double)active;
    }
    if (g->count != 0) {
        qsort(g->items, g->count, sizeof *g->items, compare_group);
    }
    *out = (allot_groups){.count = (uint32_t)g->count, .items = g->items};
}

allot_status allot_groups_init(const allot_moment *moment, allot_group_by by,
                               const allot_lines *lines, const allot_categories *categories,
                               allot_groups *out)
{
    if (by == ALLOT_GROUP_LINE && lines == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "grouping by line needs lines");
    }
    grouping g = {.by = by,
                  .lines = lines,
                  .categories = categories == NULL ? NULL : allot_categories_all(categories)};
    allot_history_get_allocations(allot_moment_history(moment), &g.table);
    uint32_t count = 0;
    const uint32_t *const rows = allot_moment_allocations(moment, &count);
    allot_status status = ALLOT_STATUS_OK;
    uint64_t active = 0;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        active += g.table.size[rows[i]];
        status = add(&g, rows[i]);
    }
    alloti_map64_fini(&g.index);
    if (status == ALLOT_STATUS_OK) {
        finish(&g, active, out);
    } else {
        free(g.items);
    }
    free(g.sums);
    return status;
}

void allot_groups_fini(allot_groups *groups)
{
    free(groups->items);
    *groups = (allot_groups){0};
}
