/* SPDX-License-Identifier: MIT */
#include "space/range_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/lanes.h"
#include "core/table.h"

enum { NODE_MAX = RANGE_NODE_MAX, HALF = NODE_MAX / 2 };

/** What an entry of a node says. */
typedef struct range_entry {
    int32_t key;
    int32_t size;
    uint32_t ref;
} range_entry;

void alloti_range_index_init(range_index *index)
{
    *index = (range_index){.free_node = ALLOT_NONE, .root = ALLOT_NONE};
}

void alloti_range_index_fini(range_index *index)
{
    free(index->nodes);
    index->nodes = NULL;
}

allot_status alloti_range_index_reserve(range_index *index, uint32_t count)
{
    /* Each insert may split a node on every level and make a new root. */
    const uint64_t levels =
        index->root == ALLOT_NONE ? 1 : (uint64_t)index->nodes[index->root].level + 2;
    const uint64_t need = count * levels;
    if (index->free_count >= need || index->used + need <= index->capacity) {
        return ALLOT_STATUS_OK;
    }
    return alloti_table_reserve(&index->nodes, &index->capacity, index->used + need,
                                sizeof *index->nodes);
}

/** From here on there are no entries. */
static void fill_keys(range_node *node, uint32_t from)
{
    for (uint32_t i = from; i < NODE_MAX; i++) {
        node->key[i] = INT32_MAX;
    }
}

static uint32_t take_node(range_index *index, uint32_t level)
{
    uint32_t taken = index->free_node;
    if (taken != ALLOT_NONE) {
        index->free_node = index->nodes[taken].parent;
        index->free_count--;
    } else {
        assert(index->used < index->capacity);
        taken = (uint32_t)index->used++;
    }
    range_node *const node = &index->nodes[taken];
    node->count = 0;
    node->level = level;
    node->parent = ALLOT_NONE;
    node->largest = -1;
    memset(node->size, 0xff, sizeof node->size);
    fill_keys(node, 0);
    return taken;
}

static void give_node(range_index *index, uint32_t node)
{
    index->nodes[node].count = 0; /* is nobody's place any more: see is_place() */
    index->nodes[node].parent = index->free_node;
    index->free_node = node;
    index->free_count++;
}

/* ---- within a node ---- */

/** Where a node's entry for this id or child is; it is there. */
static uint32_t place_of(const range_node *node, uint32_t ref)
{
    const uint32_t found = alloti_lanes_equal(node->ref, NODE_MAX, ref);
    assert(found != 0);
    return (uint32_t)__builtin_ctz(found);
}

/** Bit for each entry of at least `size`. */
static uint32_t large_enough(const range_node *node, int32_t size)
{
    return alloti_lanes_above(node->size, NODE_MAX, size - 1);
}

static int32_t largest_of(const range_node *node)
{
    int32_t largest = -1;
    for (int32_t i = 0; i < NODE_MAX; i++) {
        largest = node->size[i] > largest ? node->size[i] : largest;
    }
    return largest;
}

/** The largest size but that at one place. */
static int32_t largest_beside(const range_node *node, uint32_t at)
{
    int32_t largest = -1;
    for (int32_t i = 0; i < NODE_MAX; i++) {
        const int32_t size = node->size[i] | -(i == (int32_t)at); /* -1 at that place */
        largest = size > largest ? size : largest;
    }
    return largest;
}

static void put_at(range_node *node, uint32_t at, range_entry entry)
{
    node->key[at] = entry.key;
    node->size[at] = entry.size;
    node->ref[at] = entry.ref;
}

static void insert_at(range_node *node, uint32_t at, range_entry entry)
{
    const size_t tail = node->count - at;
    memmove(node->key + at + 1, node->key + at, tail * sizeof node->key[0]);
    memmove(node->size + at + 1, node->size + at, tail * sizeof node->size[0]);
    memmove(node->ref + at + 1, node->ref + at, tail * sizeof node->ref[0]);
    put_at(node, at, entry);
    node->count++;
}

static void remove_at(range_node *node, uint32_t at)
{
    node->count--;
    const size_t tail = node->count - at;
    memmove(node->key + at, node->key + at + 1, tail * sizeof node->key[0]);
    memmove(node->size + at, node->size + at + 1, tail * sizeof node->size[0]);
    memmove(node->ref + at, node->ref + at + 1, tail * sizeof node->ref[0]);
    put_at(node, node->count, (range_entry){INT32_MAX, -1, ALLOT_NONE});
}

/* ---- keys ---- */

/**
 * Offsets in granules, shifted so that they have 32 bits, and moved so that they are signed, as the
 * processor compares them. In a space of 2^32 granules or more keys may be equal; then the ranges
 * themselves are asked. An offset beyond all keys is as the last one.
 */
static int32_t key_of(const range_index *index, const allot_space *space, uint64_t offset)
{
    const uint64_t granules = offset >> space->granule_log2 >> index->shift;
    const uint32_t key = granules < UINT32_MAX ? (uint32_t)granules : UINT32_MAX - 1;
    return (int32_t)(key ^ (UINT32_C(1) << 31));
}

/** Have keys reach as far as an offset. */
static void reach(range_index *index, const allot_space *space, uint64_t offset)
{
    while (offset >> space->granule_log2 >> index->shift >= UINT32_MAX) {
        index->shift++;
        for (uint64_t i = 0; i < index->used; i++) {
            range_node *const n = &index->nodes[i];
            for (uint32_t at = 0; at < n->count; at++) {
                const uint32_t key = (uint32_t)n->key[at] ^ (UINT32_C(1) << 31);
                n->key[at] = (int32_t)(key >> 1 ^ (UINT32_C(1) << 31));
            }
        }
    }
}

/** Where the first range below an entry begins. */
static uint64_t offset_below(const range_index *index, const allot_space *space,
                             const range_node *node, uint32_t at)
{
    uint32_t ref = node->ref[at];
    for (uint32_t level = node->level; level != 0; level--) {
        ref = index->nodes[ref].ref[0];
    }
    return range_offset(space, ref);
}

/** Entries at or below an offset. All are compared, which takes no longer than guessing wrong. */
static uint32_t count_up_to(const range_index *index, const allot_space *space,
                            const range_node *node, uint64_t offset)
{
    const int32_t key = key_of(index, space, offset);
    const uint32_t above = alloti_lanes_above(node->key, NODE_MAX, key);
    uint32_t count = (uint32_t)__builtin_ctz(above | UINT32_C(1) << NODE_MAX);
    if (index->shift != 0) {
        while (count != 0 && node->key[count - 1] == key &&
               offset_below(index, space, node, count - 1) > offset) {
            count--;
        }
    }
    return count;
}

/* ---- searching ---- */

/** A size as nodes have it. */
static int32_t in_node(const allot_space *space, uint64_t size)
{
    const uint64_t granules = size >> space->granule_log2;
    return granules > INT32_MAX ? INT32_MAX : (int32_t)granules;
}

/** The leaf where an offset is or belongs. */
static uint32_t descend(const range_index *index, const allot_space *space, uint64_t offset)
{
    uint32_t node = index->root;
    while (index->nodes[node].level != 0) {
        const range_node *const n = &index->nodes[node];
        const uint32_t count = count_up_to(index, space, n, offset);
        node = n->ref[count == 0 ? 0 : count - 1];
    }
    return node;
}

/** The first range at or after an entry of a node that is large enough. */
static uint32_t lowest_below(const range_index *index, uint32_t node, uint32_t at, int32_t size)
{
    const range_node *n = &index->nodes[node];
    uint32_t found = large_enough(n, size) & (UINT32_MAX << at);
    if (found == 0) {
        return ALLOT_NONE;
    }
    while (n->level != 0) { /* from here on it is known to be there */
        n = &index->nodes[n->ref[__builtin_ctz(found)]];
        found = large_enough(n, size);
    }
    return n->ref[__builtin_ctz(found)];
}

/** The last range before an entry of a node that is large enough. */
static uint32_t highest_below(const range_index *index, uint32_t node, uint32_t end, int32_t size)
{
    const range_node *n = &index->nodes[node];
    uint32_t found = large_enough(n, size) & ((UINT32_C(1) << end) - 1);
    if (found == 0) {
        return ALLOT_NONE;
    }
    while (n->level != 0) {
        n = &index->nodes[n->ref[alloti_log2(found)]];
        found = large_enough(n, size);
    }
    return n->ref[alloti_log2(found)];
}

uint32_t alloti_range_index_lowest(const range_index *index, const allot_space *space,
                                   uint64_t offset, uint64_t size)
{
    const int32_t wanted = in_node(space, size);
    if (index->root == ALLOT_NONE) {
        return ALLOT_NONE;
    }
    if (offset == 0) {
        return lowest_below(index, index->root, 0, wanted);
    }
    uint32_t node = descend(index, space, offset - 1);
    uint32_t at = count_up_to(index, space, &index->nodes[node], offset - 1);
    uint32_t found = lowest_below(index, node, at, wanted);
    while (found == ALLOT_NONE && index->nodes[node].parent != ALLOT_NONE) {
        const uint32_t parent = index->nodes[node].parent;
        at = place_of(&index->nodes[parent], node) + 1;
        node = parent;
        found = lowest_below(index, node, at, wanted);
    }
    return found;
}

uint32_t alloti_range_index_highest(const range_index *index, const allot_space *space,
                                    uint64_t offset, uint64_t size)
{
    const int32_t wanted = in_node(space, size);
    if (index->root == ALLOT_NONE || offset == 0) {
        return ALLOT_NONE;
    }
    uint32_t node = descend(index, space, offset - 1);
    uint32_t at = count_up_to(index, space, &index->nodes[node], offset - 1);
    uint32_t found = highest_below(index, node, at, wanted);
    while (found == ALLOT_NONE && index->nodes[node].parent != ALLOT_NONE) {
        const uint32_t parent = index->nodes[node].parent;
        at = place_of(&index->nodes[parent], node);
        node = parent;
        found = highest_below(index, node, at, wanted);
    }
    return found;
}

uint64_t alloti_range_index_largest(const range_index *index, const allot_space *space)
{
    if (index->root == ALLOT_NONE) {
        return 0;
    }
    const int32_t largest = index->nodes[index->root].largest;
    if (largest < INT32_MAX) {
        return (uint64_t)largest << space->granule_log2;
    }
    const uint64_t least = (uint64_t)INT32_MAX << space->granule_log2;
    uint64_t size = 0;
    uint64_t from = 0;
    uint32_t id = ALLOT_NONE;
    while ((id = alloti_range_index_lowest(index, space, from, least)) != ALLOT_NONE) {
        size = range_size(space, id) > size ? range_size(space, id) : size;
        from = range_end(space, id);
    }
    return size;
}

/* ---- changing ---- */

static range_entry entry_for(const range_index *index, const allot_space *space, uint32_t id)
{
    return (range_entry){.key = key_of(index, space, range_offset(space, id)),
                         .size = in_node(space, range_size(space, id)),
                         .ref = id};
}

/** What a parent says of a node. */
static range_entry summary_of(const range_index *index, uint32_t node)
{
    const range_node *const n = &index->nodes[node];
    return (range_entry){.key = n->key[0], .size = n->largest, .ref = node};
}

/** Say below whose node an entry now is. */
static void set_home(range_index *index, allot_space *space, uint32_t node, uint32_t at)
{
    const range_node *const n = &index->nodes[node];
    if (n->level == 0) {
        space->homes[n->ref[at]] = node;
    } else {
        index->nodes[n->ref[at]].parent = node;
    }
}

/** What the largest of a node is once the size at one place is another, which it is not yet: a wide
 * read of what was just written in part would have to wait. */
static int32_t largest_with(const range_node *node, uint32_t at, int32_t size)
{
    if (size >= node->largest) {
        return size;
    }
    if (node->size[at] != node->largest) {
        return node->largest;
    }
    const int32_t others = largest_beside(node, at);
    return others > size ? others : size;
}

/** Tell a node's parent, and those above, as far as they said something else. */
static void tell_parent(range_index *index, uint32_t node)
{
    while (index->nodes[node].parent != ALLOT_NONE) {
        const range_entry now = summary_of(index, node);
        const uint32_t parent = index->nodes[node].parent;
        range_node *const p = &index->nodes[parent];
        const uint32_t at = place_of(p, node);
        const int32_t largest = largest_with(p, at, now.size);
        const bool is_told = largest == p->largest && (at != 0 || p->key[0] == now.key);
        p->key[at] = now.key;
        p->size[at] = now.size;
        p->largest = largest;
        if (is_told) {
            return;
        }
        node = parent;
    }
}

/** Move the upper half of a full node to a new one; returns that. */
static uint32_t split(range_index *index, allot_space *space, uint32_t node)
{
    const uint32_t right = take_node(index, index->nodes[node].level);
    range_node *const from = &index->nodes[node];
    range_node *const to = &index->nodes[right];
    memcpy(to->key, from->key + HALF, HALF * sizeof to->key[0]);
    memcpy(to->size, from->size + HALF, HALF * sizeof to->size[0]);
    memcpy(to->ref, from->ref + HALF, HALF * sizeof to->ref[0]);
    fill_keys(from, HALF);
    memset(from->size + HALF, 0xff, HALF * sizeof from->size[0]);
    from->count = to->count = HALF;
    for (uint32_t i = 0; i < HALF; i++) {
        set_home(index, space, right, i);
    }
    return right;
}

static void make_root(range_index *index, uint32_t left, uint32_t right)
{
    const uint32_t root = take_node(index, index->nodes[left].level + 1);
    range_node *const n = &index->nodes[root];
    put_at(n, 0, summary_of(index, left));
    put_at(n, 1, summary_of(index, right));
    n->count = 2;
    n->largest = largest_of(n);
    index->nodes[left].parent = index->nodes[right].parent = root;
    index->root = root;
}

static void insert_into(range_index *index, allot_space *space, uint32_t node, uint32_t at,
                        range_entry entry)
{
    insert_at(&index->nodes[node], at, entry);
    set_home(index, space, node, at);
}

/**
 * Whether an offset belongs into what may once have been its leaf: it does if there is a leaf of
 * that number and the offset lies between its first and its last range.
 */
static bool is_place(const range_index *index, const allot_space *space, uint32_t node,
                     uint64_t offset)
{
    if (node >= index->used) {
        return false;
    }
    const range_node *const n = &index->nodes[node];
    if (n->level != 0 || n->count == 0) {
        return false;
    }
    const int32_t key = key_of(index, space, offset);
    return n->key[0] < key && key < n->key[n->count - 1];
}

void alloti_range_index_insert(range_index *index, allot_space *space, uint32_t id)
{
    const uint64_t offset = range_offset(space, id);
    reach(index, space, offset);
    range_entry entry = entry_for(index, space, id);
    const int32_t added = entry.size;
    if (index->root == ALLOT_NONE) {
        index->root = take_node(index, 0);
    }
    uint32_t node = space->homes[id];
    if (!is_place(index, space, node, offset)) {
        node = descend(index, space, offset);
    }
    uint32_t at = count_up_to(index, space, &index->nodes[node], offset);
    while (index->nodes[node].count == NODE_MAX) {
        const uint32_t right = split(index, space, node);
        const bool is_right = at > HALF;
        insert_into(index, space, is_right ? right : node, is_right ? at - HALF : at, entry);
        range_node *const n = &index->nodes[node];
        n->largest = largest_of(n);
        index->nodes[right].largest = largest_of(&index->nodes[right]);
        if (n->parent == ALLOT_NONE) {
            make_root(index, node, right);
            return;
        }
        node = n->parent;
        at = place_of(&index->nodes[node], (uint32_t)(n - index->nodes));
        put_at(&index->nodes[node], at, summary_of(index, (uint32_t)(n - index->nodes)));
        at++;
        entry = summary_of(index, right);
    }
    insert_into(index, space, node, at, entry);
    range_node *const n = &index->nodes[node];
    const bool is_larger = added > n->largest; /* in this entry, or in the one that was split */
    n->largest = is_larger ? added : n->largest;
    if (is_larger || at <= 1) { /* 1: the first one was split and may have a new first of its own */
        tell_parent(index, node);
    }
}

void alloti_range_index_remove(range_index *index, allot_space *space, uint32_t id)
{
    uint32_t node = space->homes[id];
    uint32_t ref = id;
    for (;;) {
        range_node *const n = &index->nodes[node];
        const uint32_t at = place_of(n, ref);
        if (n->count > 1) {
            const int32_t largest = largest_with(n, at, -1);
            const bool is_told = largest == n->largest && at != 0;
            n->largest = largest;
            remove_at(n, at);
            if (!is_told) {
                tell_parent(index, node);
            }
            break;
        }
        ref = node;
        node = n->parent;
        give_node(index, ref);
        if (node == ALLOT_NONE) {
            index->root = ALLOT_NONE;
            return;
        }
    }
    while (index->nodes[index->root].level != 0 && index->nodes[index->root].count == 1) {
        const uint32_t child = index->nodes[index->root].ref[0];
        give_node(index, index->root);
        index->root = child;
        index->nodes[child].parent = ALLOT_NONE;
    }
}

void alloti_range_index_change(range_index *index, allot_space *space, uint32_t id)
{
    const uint32_t node = space->homes[id];
    range_node *const n = &index->nodes[node];
    const uint32_t at = place_of(n, id);
    reach(index, space, range_offset(space, id));
    const range_entry entry = entry_for(index, space, id);
    const int32_t largest = largest_with(n, at, entry.size);
    const bool is_told = largest == n->largest && (at != 0 || n->key[0] == entry.key);
    n->largest = largest;
    put_at(n, at, entry);
    if (!is_told) {
        tell_parent(index, node);
    }
}

/* ---- checking ---- */

/** Whether an entry is what it stands for says. */
static bool entry_is_right(const range_index *index, const allot_space *space, uint32_t node,
                           uint32_t at)
{
    const range_node *const n = &index->nodes[node];
    const uint32_t ref = n->ref[at];
    const range_entry own = n->level == 0 ? entry_for(index, space, ref) : summary_of(index, ref);
    if (own.key != n->key[at] || own.size != n->size[at]) {
        return false;
    }
    return n->level == 0
               ? space->homes[ref] == node && space_is_free(space, ref)
               : index->nodes[ref].parent == node && index->nodes[ref].level + 1 == n->level;
}

static bool rest_is_empty(const range_node *node)
{
    for (uint32_t i = node->count; i < NODE_MAX; i++) {
        if (node->key[i] != INT32_MAX || node->size[i] != -1) {
            return false;
        }
    }
    return true;
}

/** Ranges below a node, which begin at *next or above; UINT64_MAX: wrong. */
static uint64_t check_node(const range_index *index, const allot_space *space, uint32_t node,
                           uint64_t *next)
{
    const range_node *const n = &index->nodes[node];
    uint64_t sum = 0;
    if (n->count == 0 || n->count > NODE_MAX || n->largest != largest_of(n) || !rest_is_empty(n)) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n->count; i++) {
        if (!entry_is_right(index, space, node, i)) {
            return UINT64_MAX;
        }
        if (n->level == 0) {
            const uint64_t offset = range_offset(space, n->ref[i]);
            if (offset < *next) {
                return UINT64_MAX;
            }
            *next = offset + 1;
            sum++;
        } else {
            const uint64_t below = check_node(index, space, n->ref[i], next);
            if (below == UINT64_MAX) {
                return UINT64_MAX;
            }
            sum += below;
        }
    }
    return sum;
}

bool alloti_range_index_check(const range_index *index, const allot_space *space, uint64_t count)
{
    if (index->root == ALLOT_NONE) {
        return count == 0;
    }
    uint64_t next = 0;
    return index->nodes[index->root].parent == ALLOT_NONE &&
           check_node(index, space, index->root, &next) == count;
}
