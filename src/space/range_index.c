/* SPDX-License-Identifier: MIT */
#include "space/range_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"

/* Nodes split in halves, so 2^32 entries need at most 32 / (log2(RANGE_NODE_MAX) - 1) levels. */
enum { LEVELS_MAX = 12, HALF = RANGE_NODE_MAX / 2 };
_Static_assert(LEVELS_MAX * 4 >= 32, "a path holds the highest tree");

/** The way from the root to an entry. [0] is the leaf. */
typedef struct path {
    uint32_t node[LEVELS_MAX];
    uint32_t at[LEVELS_MAX];
    uint32_t height;
} path;

void range_index_init(range_index *index, bool is_by_size)
{
    *index = (range_index){.free_node = ALLOT_NONE, .root = ALLOT_NONE, .is_by_size = is_by_size};
}

void range_index_fini(range_index *index)
{
    free(index->nodes);
    index->nodes = NULL;
}

allot_status range_index_reserve(range_index *index, uint32_t count)
{
    /* Each insert may split a node on every level and make a new root. */
    const uint64_t levels =
        index->root == ALLOT_NONE ? 1 : (uint64_t)index->nodes[index->root].level + 2;
    const uint64_t need = count * levels;
    if (index->free_count >= need) {
        return ALLOT_STATUS_OK;
    }
    return alloti_array_reserve(&index->nodes, &index->capacity,
                                index->used + need - index->free_count, sizeof *index->nodes);
}

static uint32_t take_node(range_index *index, uint32_t level)
{
    uint32_t taken = index->free_node;
    if (taken != ALLOT_NONE) {
        index->free_node = index->nodes[taken].level;
        index->free_count--;
    } else {
        assert(index->used < index->capacity);
        taken = (uint32_t)index->used++;
    }
    index->nodes[taken].count = 0;
    index->nodes[taken].level = level;
    return taken;
}

static void give_node(range_index *index, uint32_t node)
{
    index->nodes[node].level = index->free_node;
    index->free_node = node;
    index->free_count++;
}

/* ---- searching ---- */

/** Number of entries whose key is at or below (first, second): one more than where it belongs. */
static uint32_t count_up_to(const range_index *index, const range_node *node, uint64_t first,
                            uint64_t second)
{
    uint32_t low = 0;
    uint32_t high = node->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const bool is_up_to =
            node->first[middle] < first || (node->first[middle] == first &&
                                            (!index->is_by_size || node->second[middle] <= second));
        low = is_up_to ? middle + 1 : low;
        high = is_up_to ? high : middle;
    }
    return low;
}

/** Go down to the leaf where a key is or belongs. at[]: the last entry at or below the key, else 0;
 * in the leaf the number of entries at or below it. */
static void descend(const range_index *index, uint64_t first, uint64_t second, path *out)
{
    uint32_t node = index->root;
    uint32_t level = index->nodes[node].level;
    assert(level < LEVELS_MAX);
    out->height = level + 1;
    for (;; level--) {
        const range_node *const n = &index->nodes[node];
        const uint32_t count = count_up_to(index, n, first, second);
        out->node[level] = node;
        if (level == 0) {
            out->at[0] = count;
            return;
        }
        out->at[level] = count == 0 ? 0 : count - 1;
        node = n->ref[out->at[level]];
    }
}

static range_entry entry_at(const range_node *leaf, uint32_t at)
{
    return (range_entry){.first = leaf->first[at], .second = leaf->second[at], .id = leaf->ref[at]};
}

/** The first entry below an inner entry, or of a leaf from `at` on, that is large enough. */
static bool lowest_below(const range_index *index, uint32_t node, uint32_t at, uint64_t size,
                         range_entry *out)
{
    for (;;) {
        const range_node *const n = &index->nodes[node];
        while (at < n->count && n->second[at] < size) {
            at++;
        }
        if (at == n->count) {
            return false;
        }
        if (n->level == 0) {
            *out = entry_at(n, at);
            return true;
        }
        node = n->ref[at];
        at = 0;
    }
}

static bool highest_below(const range_index *index, uint32_t node, uint32_t end, uint64_t size,
                          range_entry *out)
{
    for (;;) {
        const range_node *const n = &index->nodes[node];
        uint32_t at = end;
        while (at > 0 && n->second[at - 1] < size) {
            at--;
        }
        if (at == 0) {
            return false;
        }
        if (n->level == 0) {
            *out = entry_at(n, at - 1);
            return true;
        }
        node = n->ref[at - 1];
        end = index->nodes[node].count;
    }
}

bool range_index_lowest(const range_index *index, uint64_t offset, uint64_t size, range_entry *out)
{
    if (index->root == ALLOT_NONE) {
        return false;
    }
    if (offset == 0) {
        return lowest_below(index, index->root, 0, size, out);
    }
    path way;
    descend(index, offset - 1, 0, &way);
    bool is_found = lowest_below(index, way.node[0], way.at[0], size, out);
    for (uint32_t level = 1; !is_found && level < way.height; level++) {
        is_found = lowest_below(index, way.node[level], way.at[level] + 1, size, out);
    }
    return is_found;
}

bool range_index_highest(const range_index *index, uint64_t offset, uint64_t size, range_entry *out)
{
    if (index->root == ALLOT_NONE || offset == 0) {
        return false;
    }
    path way;
    descend(index, offset - 1, 0, &way);
    bool is_found = highest_below(index, way.node[0], way.at[0], size, out);
    for (uint32_t level = 1; !is_found && level < way.height; level++) {
        is_found = highest_below(index, way.node[level], way.at[level], size, out);
    }
    return is_found;
}

bool range_index_smallest(const range_index *index, uint64_t size, uint64_t offset,
                          range_entry *out)
{
    if (index->root == ALLOT_NONE) {
        return false;
    }
    path way;
    if (offset == 0) { /* what lies before every pair of this size */
        descend(index, size == 0 ? 0 : size - 1, UINT64_MAX, &way);
    } else {
        descend(index, size, offset - 1, &way);
    }
    const range_node *node = &index->nodes[way.node[0]];
    if (way.at[0] < node->count) {
        *out = entry_at(node, way.at[0]);
        return true;
    }
    for (uint32_t level = 1; level < way.height; level++) {
        node = &index->nodes[way.node[level]];
        if (way.at[level] + 1 < node->count) {
            uint32_t next = node->ref[way.at[level] + 1];
            while (index->nodes[next].level != 0) {
                next = index->nodes[next].ref[0];
            }
            *out = entry_at(&index->nodes[next], 0);
            return true;
        }
    }
    return false;
}

static uint64_t largest_of(const range_node *node)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        largest = node->second[i] > largest ? node->second[i] : largest;
    }
    return largest;
}

uint64_t range_index_largest(const range_index *index)
{
    if (index->root == ALLOT_NONE) {
        return 0;
    }
    const range_node *node = &index->nodes[index->root];
    if (!index->is_by_size) {
        return largest_of(node);
    }
    while (node->level != 0) {
        node = &index->nodes[node->ref[node->count - 1]];
    }
    return node->first[node->count - 1];
}

/* ---- changing ---- */

/** What the entry for this node says in its parent. */
static range_entry summary_of(const range_index *index, uint32_t node)
{
    const range_node *const n = &index->nodes[node];
    return (range_entry){.first = n->first[0],
                         .second = index->is_by_size ? n->second[0] : largest_of(n),
                         .id = node};
}

static void put_at(range_node *node, uint32_t at, range_entry entry)
{
    node->first[at] = entry.first;
    node->second[at] = entry.second;
    node->ref[at] = entry.id;
}

static void insert_at(range_node *node, uint32_t at, range_entry entry)
{
    const size_t tail = node->count - at;
    memmove(node->first + at + 1, node->first + at, tail * sizeof node->first[0]);
    memmove(node->second + at + 1, node->second + at, tail * sizeof node->second[0]);
    memmove(node->ref + at + 1, node->ref + at, tail * sizeof node->ref[0]);
    put_at(node, at, entry);
    node->count++;
}

static void remove_at(range_node *node, uint32_t at)
{
    node->count--;
    const size_t tail = node->count - at;
    memmove(node->first + at, node->first + at + 1, tail * sizeof node->first[0]);
    memmove(node->second + at, node->second + at + 1, tail * sizeof node->second[0]);
    memmove(node->ref + at, node->ref + at + 1, tail * sizeof node->ref[0]);
}

/** Write the summaries of the nodes on a way anew, from `level` upwards, as far as they change. */
static void refresh(range_index *index, const path *way, uint32_t level)
{
    for (; level + 1 < way->height; level++) {
        const range_entry now = summary_of(index, way->node[level]);
        range_node *const parent = &index->nodes[way->node[level + 1]];
        const uint32_t at = way->at[level + 1];
        if (parent->first[at] == now.first && parent->second[at] == now.second) {
            return;
        }
        put_at(parent, at, now);
    }
}

/** Move the upper half of a full node to a new one; returns that. */
static uint32_t split(range_index *index, uint32_t node)
{
    const uint32_t right = take_node(index, index->nodes[node].level);
    range_node *const from = &index->nodes[node];
    range_node *const to = &index->nodes[right];
    const uint32_t moved = from->count - HALF;
    memcpy(to->first, from->first + HALF, moved * sizeof to->first[0]);
    memcpy(to->second, from->second + HALF, moved * sizeof to->second[0]);
    memcpy(to->ref, from->ref + HALF, moved * sizeof to->ref[0]);
    to->count = moved;
    from->count = HALF;
    return right;
}

static void grow_root(range_index *index, uint32_t right)
{
    const uint32_t root = take_node(index, index->nodes[index->root].level + 1);
    put_at(&index->nodes[root], 0, summary_of(index, index->root));
    put_at(&index->nodes[root], 1, summary_of(index, right));
    index->nodes[root].count = 2;
    index->root = root;
}

void range_index_insert(range_index *index, range_entry entry)
{
    if (index->root == ALLOT_NONE) {
        index->root = take_node(index, 0);
        insert_at(&index->nodes[index->root], 0, entry);
        return;
    }
    path way;
    descend(index, entry.first, entry.second, &way);
    for (uint32_t level = 0;; level++) {
        const uint32_t left = way.node[level];
        const uint32_t at = level == 0 ? way.at[0] : way.at[level] + 1;
        if (index->nodes[left].count < RANGE_NODE_MAX) {
            insert_at(&index->nodes[left], at, entry);
            refresh(index, &way, level);
            return;
        }
        const uint32_t right = split(index, left);
        const bool is_right = at > HALF;
        insert_at(&index->nodes[is_right ? right : left], is_right ? at - HALF : at, entry);
        if (level + 1 == way.height) {
            grow_root(index, right);
            return;
        }
        put_at(&index->nodes[way.node[level + 1]], way.at[level + 1], summary_of(index, left));
        entry = summary_of(index, right);
    }
}

/** Drop inner roots with one child. */
static void shrink_root(range_index *index)
{
    while (index->nodes[index->root].level != 0 && index->nodes[index->root].count == 1) {
        const uint32_t child = index->nodes[index->root].ref[0];
        give_node(index, index->root);
        index->root = child;
    }
}

void range_index_remove(range_index *index, uint64_t first, uint64_t second)
{
    path way;
    descend(index, first, second, &way);
    assert(way.at[0] != 0 && index->nodes[way.node[0]].first[way.at[0] - 1] == first);
    way.at[0]--;
    for (uint32_t level = 0;; level++) {
        remove_at(&index->nodes[way.node[level]], way.at[level]);
        if (index->nodes[way.node[level]].count != 0) {
            refresh(index, &way, level);
            break;
        }
        give_node(index, way.node[level]);
        if (level + 1 == way.height) {
            index->root = ALLOT_NONE;
            return;
        }
    }
    shrink_root(index);
}

void range_index_change(range_index *index, uint64_t offset, range_entry entry)
{
    path way;
    descend(index, offset, 0, &way);
    assert(way.at[0] != 0 && index->nodes[way.node[0]].first[way.at[0] - 1] == offset);
    put_at(&index->nodes[way.node[0]], way.at[0] - 1, entry);
    refresh(index, &way, 0);
}

/* ---- checking ---- */

/** Entries below a node; UINT64_MAX if something is wrong. */
static uint64_t check_node(const range_index *index, uint32_t node)
{
    const range_node *const n = &index->nodes[node];
    uint64_t sum = n->level == 0 ? n->count : 0;
    if (n->count == 0 || n->count > RANGE_NODE_MAX) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n->count; i++) {
        const bool is_after = i == 0 || n->first[i - 1] < n->first[i] ||
                              (index->is_by_size && n->first[i - 1] == n->first[i] &&
                               n->second[i - 1] < n->second[i]);
        if (!is_after) {
            return UINT64_MAX;
        }
        if (n->level != 0) {
            const range_entry below = summary_of(index, n->ref[i]);
            const uint64_t count = check_node(index, n->ref[i]);
            if (count == UINT64_MAX || index->nodes[n->ref[i]].level + 1 != n->level ||
                below.first != n->first[i] || below.second != n->second[i]) {
                return UINT64_MAX;
            }
            sum += count;
        }
    }
    return sum;
}

bool range_index_check(const range_index *index, uint64_t count)
{
    if (index->root == ALLOT_NONE) {
        return count == 0;
    }
    return check_node(index, index->root) == count;
}
