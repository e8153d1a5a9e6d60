/* SPDX-License-Identifier: MIT */
#include "space/range_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/table.h"

enum { HALF = RANGE_NODE_MAX / 2 };

/** What an entry of a node says. */
typedef struct range_entry {
    uint64_t first;
    uint64_t second;
    uint32_t ref;
} range_entry;

void alloti_range_index_init(range_index *index, bool is_by_size)
{
    *index = (range_index){.free_node = ALLOT_NONE, .root = ALLOT_NONE, .is_by_size = is_by_size};
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
    index->nodes[taken].count = 0;
    index->nodes[taken].level = level;
    index->nodes[taken].parent = ALLOT_NONE;
    index->nodes[taken].largest = 0;
    return taken;
}

static void give_node(range_index *index, uint32_t node)
{
    index->nodes[node].parent = index->free_node;
    index->free_node = node;
    index->free_count++;
}

/* ---- searching ---- */

/** Whether an entry is at or below a key. */
static inline bool is_up_to(const range_index *index, const range_node *node, uint32_t at,
                            uint64_t first, uint64_t second)
{
    const bool is_tied = index->is_by_size && node->first[at] == first;
    return is_tied ? node->second[at] <= second : node->first[at] <= first;
}

/**
 * Number of entries whose key is at or below (first, second). The halves are chosen by arithmetic:
 * a branch here would be guessed wrong every other time.
 */
static uint32_t count_up_to(const range_index *index, const range_node *node, uint64_t first,
                            uint64_t second)
{
    uint32_t base = 0;
    uint32_t length = node->count;
    while (length > 1) {
        const uint32_t half = length / 2;
        base += is_up_to(index, node, base + half - 1, first, second) ? half : 0;
        length -= half;
    }
    return base + (is_up_to(index, node, base, first, second) ? 1 : 0);
}

/** The leaf where a key is or belongs. */
static uint32_t descend(const range_index *index, uint64_t first, uint64_t second)
{
    uint32_t node = index->root;
    while (index->nodes[node].level != 0) {
        const range_node *const n = &index->nodes[node];
        const uint32_t count = count_up_to(index, n, first, second);
        node = n->ref[count == 0 ? 0 : count - 1];
    }
    return node;
}

/** Where a node's entry for this id or child is; it is there. */
static uint32_t place_of(const range_node *node, uint32_t ref)
{
    uint32_t at = 0;
    while (node->ref[at] != ref) {
        at++;
    }
    assert(at < node->count);
    return at;
}

/** The first range at or after an entry of a node that is large enough. */
static uint32_t lowest_below(const range_index *index, uint32_t node, uint32_t at, uint64_t size)
{
    const range_node *n = &index->nodes[node];
    while (at < n->count && n->second[at] < size) {
        at++;
    }
    if (at == n->count) {
        return ALLOT_NONE;
    }
    while (n->level != 0) { /* from here on it is known to be there */
        n = &index->nodes[n->ref[at]];
        at = 0;
        while (n->second[at] < size) {
            at++;
        }
    }
    return n->ref[at];
}

/** The last range before an entry of a node that is large enough. */
static uint32_t highest_below(const range_index *index, uint32_t node, uint32_t end, uint64_t size)
{
    for (;;) {
        const range_node *const n = &index->nodes[node];
        uint32_t at = end;
        while (at > 0 && n->second[at - 1] < size) {
            at--;
        }
        if (at == 0) {
            return ALLOT_NONE;
        }
        node = n->ref[at - 1];
        if (n->level == 0) {
            return node;
        }
        end = index->nodes[node].count;
    }
}

uint32_t alloti_range_index_lowest(const range_index *index, uint64_t offset, uint64_t size)
{
    if (index->root == ALLOT_NONE) {
        return ALLOT_NONE;
    }
    if (offset == 0) {
        return lowest_below(index, index->root, 0, size);
    }
    uint32_t node = descend(index, offset - 1, 0);
    uint32_t at = count_up_to(index, &index->nodes[node], offset - 1, 0);
    uint32_t found = lowest_below(index, node, at, size);
    while (found == ALLOT_NONE && index->nodes[node].parent != ALLOT_NONE) {
        const uint32_t parent = index->nodes[node].parent;
        at = place_of(&index->nodes[parent], node) + 1;
        node = parent;
        found = lowest_below(index, node, at, size);
    }
    return found;
}

uint32_t alloti_range_index_highest(const range_index *index, uint64_t offset, uint64_t size)
{
    if (index->root == ALLOT_NONE || offset == 0) {
        return ALLOT_NONE;
    }
    uint32_t node = descend(index, offset - 1, 0);
    uint32_t at = count_up_to(index, &index->nodes[node], offset - 1, 0);
    uint32_t found = highest_below(index, node, at, size);
    while (found == ALLOT_NONE && index->nodes[node].parent != ALLOT_NONE) {
        const uint32_t parent = index->nodes[node].parent;
        at = place_of(&index->nodes[parent], node);
        node = parent;
        found = highest_below(index, node, at, size);
    }
    return found;
}

uint32_t alloti_range_index_smallest(const range_index *index, uint64_t size, uint64_t offset)
{
    if (index->root == ALLOT_NONE || size == 0) {
        return ALLOT_NONE;
    }
    /* The last key before the wanted one. */
    const uint64_t first = offset == 0 ? size - 1 : size;
    const uint64_t second = offset == 0 ? UINT64_MAX : offset - 1;
    uint32_t node = descend(index, first, second);
    uint32_t at = count_up_to(index, &index->nodes[node], first, second);
    while (at == index->nodes[node].count) {
        const uint32_t parent = index->nodes[node].parent;
        if (parent == ALLOT_NONE) {
            return ALLOT_NONE;
        }
        at = place_of(&index->nodes[parent], node) + 1;
        node = parent;
    }
    uint32_t found = index->nodes[node].ref[at];
    for (uint32_t level = index->nodes[node].level; level > 0; level--) {
        found = index->nodes[found].ref[0];
    }
    return found;
}

static uint64_t largest_of(const range_node *node)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        largest = node->second[i] > largest ? node->second[i] : largest;
    }
    return largest;
}

uint64_t alloti_range_index_largest(const range_index *index)
{
    if (index->root == ALLOT_NONE) {
        return 0;
    }
    const range_node *node = &index->nodes[index->root];
    if (!index->is_by_size) {
        return node->largest;
    }
    while (node->level != 0) {
        node = &index->nodes[node->ref[node->count - 1]];
    }
    return node->first[node->count - 1];
}

/* ---- changing ---- */

static range_entry entry_for(const range_index *index, const allot_space *space, uint32_t id)
{
    const uint64_t offset = range_offset(space, id);
    const uint64_t size = range_size(space, id);
    return index->is_by_size ? (range_entry){.first = size, .second = offset, .ref = id}
                             : (range_entry){.first = offset, .second = size, .ref = id};
}

/** What a parent says of a node. */
static range_entry summary_of(const range_index *index, uint32_t node)
{
    const range_node *const n = &index->nodes[node];
    return (range_entry){
        .first = n->first[0], .second = index->is_by_size ? n->second[0] : n->largest, .ref = node};
}

static void put_at(range_node *node, uint32_t at, range_entry entry)
{
    node->first[at] = entry.first;
    node->second[at] = entry.second;
    node->ref[at] = entry.ref;
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

/** The largest second value of a node in which one was `old` and is `now`; 0: not there. */
static uint64_t largest_after(const range_node *node, uint64_t old, uint64_t now)
{
    if (now >= node->largest) {
        return now;
    }
    return old == node->largest ? largest_of(node) : node->largest;
}

/**
 * Correct what is said of a node in which one second value was `old` and is `now`, here and above,
 * as far as it changes. `is_first`: its smallest key may be another.
 */
static void refresh(range_index *index, uint32_t node, uint64_t old, uint64_t now, bool is_first)
{
    for (;;) {
        range_node *const n = &index->nodes[node];
        const uint64_t had = n->largest;
        if (!index->is_by_size) {
            n->largest = largest_after(n, old, now);
        }
        if ((n->largest == had && !is_first) || n->parent == ALLOT_NONE) {
            return;
        }
        range_node *const parent = &index->nodes[n->parent];
        const uint32_t at = place_of(parent, node);
        if (is_first) {
            parent->first[at] = n->first[0];
        }
        parent->second[at] = index->is_by_size ? n->second[0] : n->largest;
        is_first = is_first && at == 0;
        old = had;
        now = n->largest;
        node = n->parent;
    }
}

/** Move the upper half of a full node to a new one; returns that. */
static uint32_t split(range_index *index, allot_space *space, uint32_t node)
{
    const uint32_t right = take_node(index, index->nodes[node].level);
    range_node *const from = &index->nodes[node];
    range_node *const to = &index->nodes[right];
    memcpy(to->first, from->first + HALF, HALF * sizeof to->first[0]);
    memcpy(to->second, from->second + HALF, HALF * sizeof to->second[0]);
    memcpy(to->ref, from->ref + HALF, HALF * sizeof to->ref[0]);
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

void alloti_range_index_insert(range_index *index, allot_space *space, uint32_t id)
{
    range_entry entry = entry_for(index, space, id);
    const uint64_t added = entry.second;
    if (index->root == ALLOT_NONE) {
        index->root = take_node(index, 0);
    }
    uint32_t node = descend(index, entry.first, entry.second);
    range_node *n = &index->nodes[node];
    uint32_t at = n->count == 0 ? 0 : count_up_to(index, n, entry.first, entry.second);
    bool is_first = at == 0;
    while (n->count == RANGE_NODE_MAX) {
        const uint32_t right = split(index, space, node);
        const bool is_right = at > HALF;
        insert_into(index, space, is_right ? right : node, is_right ? at - HALF : at, entry);
        n = &index->nodes[node];
        n->largest = largest_of(n);
        index->nodes[right].largest = largest_of(&index->nodes[right]);
        if (n->parent == ALLOT_NONE) {
            make_root(index, node, right);
            return;
        }
        range_node *const parent = &index->nodes[n->parent];
        at = place_of(parent, node);
        put_at(parent, at, summary_of(index, node));
        entry = summary_of(index, right);
        is_first = is_first && at == 0;
        at++;
        node = n->parent;
        n = parent;
    }
    insert_into(index, space, node, at, entry);
    refresh(index, node, 0, added, is_first);
}

void alloti_range_index_remove(range_index *index, allot_space *space, uint32_t id)
{
    uint32_t node = space->homes[id];
    uint32_t ref = id;
    for (;;) {
        range_node *const n = &index->nodes[node];
        const uint32_t at = place_of(n, ref);
        const uint64_t old = n->second[at];
        remove_at(n, at);
        if (n->count != 0) {
            refresh(index, node, old, 0, at == 0);
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
    const range_entry entry = entry_for(index, space, id);
    const uint64_t old = n->second[at];
    put_at(n, at, entry);
    refresh(index, node, old, entry.second, at == 0);
}

/* ---- checking ---- */

/** Whether an entry is what it stands for says. */
static bool entry_is_right(const range_index *index, const allot_space *space, uint32_t node,
                           uint32_t at)
{
    const range_node *const n = &index->nodes[node];
    if (n->level == 0) {
        const range_entry own = entry_for(index, space, n->ref[at]);
        return own.first == n->first[at] && own.second == n->second[at] &&
               space->homes[own.ref] == node && space_is_free(space, own.ref);
    }
    const range_entry below = summary_of(index, n->ref[at]);
    return n->first[at] == below.first && n->second[at] == below.second &&
           index->nodes[below.ref].parent == node && index->nodes[below.ref].level + 1 == n->level;
}

/** Ranges below a node, their keys above `*last`, which becomes the last key; UINT64_MAX: wrong. */
static uint64_t check_node(const range_index *index, const allot_space *space, uint32_t node,
                           range_entry *last)
{
    const range_node *const n = &index->nodes[node];
    uint64_t sum = 0;
    if (n->count == 0 || n->count > RANGE_NODE_MAX ||
        (!index->is_by_size && n->largest != largest_of(n))) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n->count; i++) {
        const bool is_after =
            n->first[i] > last->first ||
            (n->first[i] == last->first && index->is_by_size && n->second[i] > last->second) ||
            last->ref == ALLOT_NONE;
        if (!is_after || !entry_is_right(index, space, node, i)) {
            return UINT64_MAX;
        }
        if (n->level == 0) {
            *last = (range_entry){.first = n->first[i], .second = n->second[i], .ref = 0};
            sum++;
        } else {
            const uint64_t below = check_node(index, space, n->ref[i], last);
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
    range_entry last = {.ref = ALLOT_NONE};
    return index->nodes[index->root].parent == ALLOT_NONE &&
           check_node(index, space, index->root, &last) == count;
}
