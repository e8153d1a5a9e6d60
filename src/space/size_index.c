/* SPDX-License-Identifier: MIT */
#include "space/size_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/lanes.h"
#include "core/table.h"

enum { NODE_MAX = SIZE_NODE_MAX, HALF = NODE_MAX / 2, KEY_BITS = 63 };

void alloti_size_index_init(size_index *index)
{
    *index = (size_index){.free_node = ALLOT_NONE};
}

void alloti_size_index_fini(size_index *index)
{
    free(index->nodes);
    index->nodes = NULL;
}

allot_status alloti_size_index_reserve(size_index *index, uint32_t count)
{
    /* Each insert may split a node on every level and make a new root. */
    const uint64_t need = count * ((uint64_t)index->height + 2);
    if (index->free_count >= need || index->used + need <= index->capacity) {
        return ALLOT_STATUS_OK;
    }
    return alloti_table_reserve(&index->nodes, &index->capacity, index->used + need,
                                sizeof *index->nodes);
}

static uint32_t take_node(size_index *index, uint32_t level)
{
    uint32_t taken = index->free_node;
    if (taken != ALLOT_NONE) {
        index->free_node = index->nodes[taken].parent;
        index->free_count--;
    } else {
        assert(index->used < index->capacity);
        taken = (uint32_t)index->used++;
    }
    size_node *const node = &index->nodes[taken];
    node->count = 0;
    node->level = level;
    node->parent = ALLOT_NONE;
    memset(node->key, 0xff, sizeof node->key);
    index->height = level > index->height ? level : index->height;
    return taken;
}

static void give_node(size_index *index, uint32_t node)
{
    index->nodes[node].parent = index->free_node;
    index->free_node = node;
    index->free_count++;
}

/* ---- keys ---- */

static unsigned power_of(const allot_space *space, uint64_t size)
{
    return alloti_log2(size) - space->granule_log2;
}

static uint64_t key_of(const allot_space *space, unsigned power, uint64_t size, uint64_t offset)
{
    const uint64_t rest = (size >> space->granule_log2) ^ (UINT64_C(1) << power);
    return rest << (KEY_BITS - power) | offset >> space->granule_log2 >> power;
}

/* ---- within a node ---- */

/** Keys below another. All are compared, which takes no longer than guessing wrong once. */
static uint32_t count_below(const size_node *node, uint64_t key)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODE_MAX; i++) {
        count += node->key[i] < key ? 1 : 0;
    }
    return count;
}

/** Where a node's entry for this id or child is; it is there. */
static uint32_t place_of(const size_node *node, uint32_t ref)
{
    const uint32_t found = alloti_lanes_equal(node->ref, NODE_MAX, ref);
    assert(found != 0);
    return (uint32_t)__builtin_ctz(found);
}

static void insert_at(size_node *node, uint32_t at, uint32_t ref, uint64_t key)
{
    const size_t tail = node->count - at;
    memmove(node->ref + at + 1, node->ref + at, tail * sizeof node->ref[0]);
    memmove(node->key + at + 1, node->key + at, tail * sizeof node->key[0]);
    node->ref[at] = ref;
    node->key[at] = key;
    node->count++;
}

static void remove_at(size_node *node, uint32_t at)
{
    node->count--;
    const size_t tail = node->count - at;
    memmove(node->ref + at, node->ref + at + 1, tail * sizeof node->ref[0]);
    memmove(node->key + at, node->key + at + 1, tail * sizeof node->key[0]);
    node->key[node->count] = UINT64_MAX;
}

/* ---- searching ---- */

/** The leaf where a key is or belongs. */
static uint32_t descend(const size_index *index, uint32_t node, uint64_t key)
{
    while (index->nodes[node].level != 0) {
        const size_node *const n = &index->nodes[node];
        const uint32_t count = count_below(n, key + 1);
        node = n->ref[count == 0 ? 0 : count - 1];
    }
    return node;
}

static uint32_t first_below(const size_index *index, uint32_t node)
{
    while (index->nodes[node].level != 0) {
        node = index->nodes[node].ref[0];
    }
    return index->nodes[node].ref[0];
}

/** The first range of a tree at or above a key; ALLOT_NONE for none. */
static uint32_t first_from(const size_index *index, unsigned power, uint64_t key)
{
    uint32_t node = descend(index, index->roots[power], key);
    const size_node *n = &index->nodes[node];
    uint32_t at = count_below(n, key);
    if (at < n->count) {
        return n->ref[at];
    }
    do {
        if (n->parent == ALLOT_NONE) {
            return ALLOT_NONE;
        }
        at = place_of(&index->nodes[n->parent], node) + 1;
        node = n->parent;
        n = &index->nodes[node];
    } while (at == n->count);
    return first_below(index, n->ref[at]);
}

/** The first range at or above a key of a tree, or of one above. */
static uint32_t search(const size_index *index, unsigned power, uint64_t key)
{
    if ((index->powers >> power & 1) != 0) {
        const uint32_t id = first_from(index, power, key);
        if (id != ALLOT_NONE) {
            return id;
        }
    }
    const uint64_t above = index->powers & (UINT64_MAX << power << 1);
    return above == 0 ? ALLOT_NONE
                      : first_below(index, index->roots[(unsigned)__builtin_ctzll(above)]);
}

uint32_t alloti_size_index_smallest(const size_index *index, const allot_space *space,
                                    uint64_t size)
{
    const unsigned power = power_of(space, size);
    return search(index, power, key_of(space, power, size, 0));
}

uint32_t alloti_size_index_next(const size_index *index, const allot_space *space, uint32_t id)
{
    const uint64_t size = range_size(space, id);
    const unsigned power = power_of(space, size);
    return search(index, power, key_of(space, power, size, range_offset(space, id)) + 1);
}

uint64_t alloti_size_index_largest(const size_index *index, const allot_space *space)
{
    if (index->powers == 0) {
        return 0;
    }
    const size_node *node = &index->nodes[index->roots[alloti_log2(index->powers)]];
    while (node->level != 0) {
        node = &index->nodes[node->ref[node->count - 1]];
    }
    return range_size(space, node->ref[node->count - 1]);
}

/* ---- changing ---- */

/** Say below whose node an entry now is. */
static void set_home(size_index *index, allot_space *space, uint32_t node, uint32_t at)
{
    const size_node *const n = &index->nodes[node];
    if (n->level == 0) {
        space->homes[n->ref[at]] = node;
    } else {
        index->nodes[n->ref[at]].parent = node;
    }
}

static void insert_into(size_index *index, allot_space *space, uint32_t node, uint32_t at,
                        uint32_t ref, uint64_t key)
{
    insert_at(&index->nodes[node], at, ref, key);
    set_home(index, space, node, at);
}

/** Move the upper half of a full node to a new one; returns that. */
static uint32_t split(size_index *index, allot_space *space, uint32_t node)
{
    const uint32_t right = take_node(index, index->nodes[node].level);
    size_node *const from = &index->nodes[node];
    size_node *const to = &index->nodes[right];
    memcpy(to->ref, from->ref + HALF, HALF * sizeof to->ref[0]);
    memcpy(to->key, from->key + HALF, HALF * sizeof to->key[0]);
    memset(from->key + HALF, 0xff, HALF * sizeof from->key[0]);
    from->count = to->count = HALF;
    for (uint32_t i = 0; i < HALF; i++) {
        set_home(index, space, right, i);
    }
    return right;
}

static uint32_t make_root(size_index *index, uint32_t left, uint32_t right)
{
    const uint32_t root = take_node(index, index->nodes[left].level + 1);
    size_node *const n = &index->nodes[root];
    insert_at(n, 0, left, index->nodes[left].key[0]);
    insert_at(n, 1, right, index->nodes[right].key[0]);
    index->nodes[left].parent = index->nodes[right].parent = root;
    return root;
}

void alloti_size_index_insert(size_index *index, allot_space *space, uint32_t id)
{
    const unsigned power = power_of(space, range_size(space, id));
    uint64_t key = key_of(space, power, range_size(space, id), range_offset(space, id));
    if ((index->powers >> power & 1) == 0) {
        index->powers |= UINT64_C(1) << power;
        index->roots[power] = take_node(index, 0);
    }
    uint32_t node = descend(index, index->roots[power], key);
    uint32_t at = count_below(&index->nodes[node], key);
    uint32_t ref = id;
    while (index->nodes[node].count == NODE_MAX) {
        const uint32_t right = split(index, space, node);
        const bool is_right = at > HALF;
        insert_into(index, space, is_right ? right : node, is_right ? at - HALF : at, ref, key);
        const uint32_t parent = index->nodes[node].parent;
        if (parent == ALLOT_NONE) {
            index->roots[power] = make_root(index, node, right);
            return;
        }
        at = place_of(&index->nodes[parent], node);
        if (at == 0) { /* what is below its key is there too, and may be what went to the right */
            index->nodes[parent].key[0] = index->nodes[node].key[0];
        }
        at++;
        ref = right;
        key = index->nodes[right].key[0];
        node = parent;
    }
    insert_into(index, space, node, at, ref, key);
}

void alloti_size_index_remove(size_index *index, allot_space *space, uint32_t id, uint64_t size)
{
    const unsigned power = power_of(space, size);
    uint32_t node = space->homes[id];
    uint32_t ref = id;
    for (;;) {
        size_node *const n = &index->nodes[node];
        remove_at(n, place_of(n, ref));
        if (n->count != 0) {
            break;
        }
        ref = node;
        node = n->parent;
        give_node(index, ref);
        if (node == ALLOT_NONE) {
            index->powers &= ~(UINT64_C(1) << power);
            return;
        }
    }
    uint32_t root = index->roots[power];
    while (index->nodes[root].level != 0 && index->nodes[root].count == 1) {
        const uint32_t child = index->nodes[root].ref[0];
        give_node(index, root);
        index->nodes[child].parent = ALLOT_NONE;
        root = child;
    }
    index->roots[power] = root;
}

/* ---- checking ---- */

typedef struct walk {
    unsigned power;
    uint64_t next; /**< Keys are at least this. */
    uint64_t count;
} walk;

static bool check_entry(const size_index *index, const allot_space *space, uint32_t node,
                        uint32_t at, walk *w);

static bool check_node(const size_index *index, const allot_space *space, uint32_t node, walk *w)
{
    const size_node *const n = &index->nodes[node];
    if (n->count == 0 || n->count > NODE_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < NODE_MAX; i++) {
        if (i >= n->count ? n->key[i] != UINT64_MAX : !check_entry(index, space, node, i, w)) {
            return false;
        }
    }
    return true;
}

static bool check_entry(const size_index *index, const allot_space *space, uint32_t node,
                        uint32_t at, walk *w)
{
    const size_node *const n = &index->nodes[node];
    const uint32_t ref = n->ref[at];
    if (n->level != 0) {
        /* The first child takes what is below its key too. */
        if (at != 0 && n->key[at] < w->next) {
            return false;
        }
        w->next = at != 0 ? n->key[at] : w->next;
        const size_node *const below = &index->nodes[ref];
        return below->parent == node && below->level + 1 == n->level &&
               check_node(index, space, ref, w);
    }
    const uint64_t size = range_size(space, ref);
    const uint64_t key = key_of(space, w->power, size, range_offset(space, ref));
    if (power_of(space, size) != w->power || n->key[at] != key || key < w->next ||
        space->homes[ref] != node || !space_is_free(space, ref)) {
        return false;
    }
    w->next = key + 1;
    w->count++;
    return true;
}

bool alloti_size_index_check(const size_index *index, const allot_space *space, uint64_t count)
{
    uint64_t sum = 0;
    for (unsigned power = 0; power < SIZE_POWERS; power++) {
        if ((index->powers >> power & 1) != 0) {
            walk w = {.power = power};
            if (index->nodes[index->roots[power]].parent != ALLOT_NONE ||
                !check_node(index, space, index->roots[power], &w)) {
                return false;
            }
            sum += w.count;
        }
    }
    return sum == count;
}
