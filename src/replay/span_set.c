/* SPDX-License-Identifier: MIT */
#include "replay/span_set.h"

#include <assert.h>
#include <stdlib.h>

#include "core/array.h"

enum { BY_ADDRESS = 0, BY_SIZE = 1 };

static const uint32_t NIL = ALLOT_NONE;

/** Children of one node in one of the trees. */
typedef struct span_links {
    uint32_t left;
    uint32_t right;
} span_links;

struct alloti_span_node {
    alloti_span span;
    uint64_t priority; /**< Not below that of its children, in both trees. */
    uint64_t largest;  /**< Largest span in its subtree of the tree by address. */
    span_links links[2];
};

/** Mixes all bits (the finaliser of splitmix64, Steele et al. 2014). */
static uint64_t priority_of(uint64_t address)
{
    uint64_t x = address + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/** Whether span a comes before span b in the tree `by`. */
static bool comes_before(int by, const alloti_span *a, const alloti_span *b)
{
    if (by == BY_SIZE && a->size != b->size) {
        return a->size < b->size;
    }
    return a->address < b->address;
}

static uint64_t largest_of(const alloti_span_set *set, uint32_t node)
{
    return node == NIL ? 0 : set->nodes[node].largest;
}

/** Recompute what a node of the tree by address knows of its subtree. */
static void refresh(alloti_span_set *set, uint32_t node)
{
    alloti_span_node *const n = &set->nodes[node];
    const uint64_t left = largest_of(set, n->links[BY_ADDRESS].left);
    const uint64_t right = largest_of(set, n->links[BY_ADDRESS].right);
    n->largest = n->span.size;
    n->largest = left > n->largest ? left : n->largest;
    n->largest = right > n->largest ? right : n->largest;
}

/** Split a tree into the spans before `span` and the others. Recursion is as deep as the tree. */
static void tree_split(alloti_span_set *set, int by, uint32_t root, const alloti_span *span,
                       uint32_t *before, uint32_t *after)
{
    if (root == NIL) {
        *before = NIL;
        *after = NIL;
        return;
    }
    span_links *const links = &set->nodes[root].links[by];
    if (comes_before(by, &set->nodes[root].span, span)) {
        tree_split(set, by, links->right, span, &links->right, after);
        *before = root;
    } else {
        tree_split(set, by, links->left, span, before, &links->left);
        *after = root;
    }
    if (by == BY_ADDRESS) {
        refresh(set, root);
    }
}

/** Join two trees; everything in `a` comes before everything in `b`. */
static uint32_t tree_join(alloti_span_set *set, int by, uint32_t a, uint32_t b)
{
    if (a == NIL || b == NIL) {
        return a == NIL ? b : a;
    }
    const bool a_on_top = set->nodes[a].priority >= set->nodes[b].priority;
    const uint32_t root = a_on_top ? a : b;
    span_links *const links = &set->nodes[root].links[by];
    if (a_on_top) {
        links->right = tree_join(set, by, links->right, b);
    } else {
        links->left = tree_join(set, by, a, links->left);
    }
    if (by == BY_ADDRESS) {
        refresh(set, root);
    }
    return root;
}

static void tree_insert(alloti_span_set *set, int by, uint32_t node)
{
    uint32_t before = NIL;
    uint32_t after = NIL;
    tree_split(set, by, set->root_by[by], &set->nodes[node].span, &before, &after);
    set->nodes[node].links[by] = (span_links){NIL, NIL};
    set->root_by[by] = tree_join(set, by, tree_join(set, by, before, node), after);
}

/** Take `node` out of the subtree at *link. */
static void tree_remove(alloti_span_set *set, int by, uint32_t *link, uint32_t node)
{
    assert(*link != NIL);
    const uint32_t root = *link;
    span_links *const links = &set->nodes[root].links[by];
    if (root == node) {
        *link = tree_join(set, by, links->left, links->right);
        return;
    }
    const bool is_left = comes_before(by, &set->nodes[node].span, &set->nodes[root].span);
    tree_remove(set, by, is_left ? &links->left : &links->right, node);
    if (by == BY_ADDRESS) {
        refresh(set, root);
    }
}

void alloti_span_set_fini(alloti_span_set *set)
{
    free(set->nodes);
    *set = ALLOTI_SPAN_SET_EMPTY;
}

static allot_status node_take(alloti_span_set *set, uint32_t *out)
{
    if (set->spare != NIL) {
        assert(set->nodes != NULL && set->spare < set->used);
        *out = set->spare;
        set->spare = set->nodes[set->spare].links[0].left;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_array_reserve(&set->nodes, &set->capacity,
                                                     (uint64_t)set->used + 1, sizeof *set->nodes);
    if (status == ALLOT_STATUS_OK) {
        *out = set->used++;
    }
    return status;
}

allot_status alloti_span_set_add(alloti_span_set *set, alloti_span span)
{
    assert(span.size > 0);
    uint32_t node = NIL;
    const allot_status status = node_take(set, &node);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    set->nodes[node] = (alloti_span_node){
        .span = span, .priority = priority_of(span.address), .largest = span.size};
    tree_insert(set, BY_ADDRESS, node);
    tree_insert(set, BY_SIZE, node);
    set->count++;
    set->bytes += span.size;
    return ALLOT_STATUS_OK;
}

/** Node of the last span that begins at or below `address`, NIL if none. */
static uint32_t floor_node(const alloti_span_set *set, uint64_t address)
{
    uint32_t found = NIL;
    uint32_t node = set->root_by[BY_ADDRESS];
    while (node != NIL) {
        const alloti_span_node *const n = &set->nodes[node];
        if (n->span.address <= address) {
            found = node;
            node = n->links[BY_ADDRESS].right;
        } else {
            node = n->links[BY_ADDRESS].left;
        }
    }
    return found;
}

void alloti_span_set_remove(alloti_span_set *set, uint64_t address)
{
    const uint32_t node = floor_node(set, address);
    assert(node != NIL && set->nodes[node].span.address == address);
    tree_remove(set, BY_ADDRESS, &set->root_by[BY_ADDRESS], node);
    tree_remove(set, BY_SIZE, &set->root_by[BY_SIZE], node);
    set->count--;
    set->bytes -= set->nodes[node].span.size;
    set->nodes[node].links[0].left = set->spare;
    set->spare = node;
}

allot_status alloti_span_set_merge(alloti_span_set *set, alloti_span span)
{
    const alloti_span *const next = alloti_span_set_ceiling(set, span.address);
    if (next != NULL && next->segment == span.segment &&
        next->address == span.address + span.size) {
        span.size += next->size;
        alloti_span_set_remove(set, next->address);
    }
    const alloti_span *const previous = alloti_span_set_floor(set, span.address);
    if (previous != NULL && previous->segment == span.segment &&
        previous->address + previous->size == span.address) {
        span.address = previous->address;
        span.size += previous->size;
        alloti_span_set_remove(set, previous->address);
    }
    return alloti_span_set_add(set, span);
}

allot_status alloti_span_set_drain(alloti_span_set *from, alloti_span_set *to)
{
    while (from->count > 0) {
        const alloti_span span = *alloti_span_set_ceiling(from, 0);
        alloti_span_set_remove(from, span.address);
        const allot_status status = alloti_span_set_merge(to, span);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_span_set_carve(alloti_span_set *set, const alloti_span *fit, uint64_t size,
                                   alloti_span *out)
{
    const alloti_span span = *fit;
    alloti_span_set_remove(set, span.address);
    if (span.size > size) {
        const alloti_span rest = {
            .address = span.address + size, .size = span.size - size, .segment = span.segment};
        const allot_status status = alloti_span_set_add(set, rest);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = (alloti_span){.address = span.address, .size = size, .segment = span.segment};
    return ALLOT_STATUS_OK;
}

static const alloti_span *span_of(const alloti_span_set *set, uint32_t node)
{
    return node == NIL ? NULL : &set->nodes[node].span;
}

const alloti_span *alloti_span_set_best_fit(const alloti_span_set *set, uint64_t size)
{
    uint32_t found = NIL;
    uint32_t node = set->root_by[BY_SIZE];
    while (node != NIL) {
        const alloti_span_node *const n = &set->nodes[node];
        if (n->span.size >= size) {
            found = node;
            node = n->links[BY_SIZE].left;
        } else {
            node = n->links[BY_SIZE].right;
        }
    }
    return span_of(set, found);
}

const alloti_span *alloti_span_set_first_fit(const alloti_span_set *set, uint64_t size)
{
    uint32_t node = set->root_by[BY_ADDRESS];
    if (largest_of(set, node) < size) {
        return NULL;
    }
    for (;;) {
        const alloti_span_node *const n = &set->nodes[node];
        if (largest_of(set, n->links[BY_ADDRESS].left) >= size) {
            node = n->links[BY_ADDRESS].left;
        } else if (n->span.size >= size) {
            return &n->span;
        } else {
            node = n->links[BY_ADDRESS].right;
        }
    }
}

const alloti_span *alloti_span_set_floor(const alloti_span_set *set, uint64_t address)
{
    return span_of(set, floor_node(set, address));
}

const alloti_span *alloti_span_set_ceiling(const alloti_span_set *set, uint64_t address)
{
    uint32_t found = NIL;
    uint32_t node = set->root_by[BY_ADDRESS];
    while (node != NIL) {
        const alloti_span_node *const n = &set->nodes[node];
        if (n->span.address >= address) {
            found = node;
            node = n->links[BY_ADDRESS].left;
        } else {
            node = n->links[BY_ADDRESS].right;
        }
    }
    return span_of(set, found);
}

uint64_t alloti_span_set_largest(const alloti_span_set *set)
{
    return largest_of(set, set->root_by[BY_ADDRESS]);
}

/** What a walk over one tree has seen. */
typedef struct span_walk {
    int by;
    uint64_t count;
    uint64_t bytes;
    const alloti_span *last;
    bool ok;
} span_walk;

static void walk(const alloti_span_set *set, uint32_t node, span_walk *w)
{
    if (node == NIL || !w->ok) {
        return;
    }
    const alloti_span_node *const n = &set->nodes[node];
    const span_links links = n->links[w->by];
    walk(set, links.left, w);
    if (w->last != NULL) {
        w->ok = w->ok && comes_before(w->by, w->last, &n->span);
        if (w->by == BY_ADDRESS) {
            w->ok = w->ok && w->last->address + w->last->size <= n->span.address;
        }
    }
    w->last = &n->span;
    w->count++;
    w->bytes += n->span.size;
    walk(set, links.right, w);
    uint64_t largest = n->span.size;
    for (int side = 0; side < 2; side++) {
        const uint32_t child = side == 0 ? links.left : links.right;
        w->ok = w->ok && (child == NIL || set->nodes[child].priority <= n->priority);
        largest = largest_of(set, child) > largest ? largest_of(set, child) : largest;
    }
    w->ok = w->ok && (w->by != BY_ADDRESS || largest == n->largest);
}

bool alloti_span_set_check(const alloti_span_set *set)
{
    for (int by = BY_ADDRESS; by <= BY_SIZE; by++) {
        span_walk w = {.by = by, .ok = true};
        walk(set, set->root_by[by], &w);
        if (!w.ok || w.count != set->count || w.bytes != set->bytes) {
            return false;
        }
    }
    return true;
}
