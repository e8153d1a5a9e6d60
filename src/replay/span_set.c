/* SPDX-License-Identifier: MIT */
#include "replay/span_set.h"

#include <assert.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/compare.h"

enum { BY_ADDRESS = 0, BY_SIZE = 1 };
static const uint32_t NIL = ALLOT_NONE;

struct alloti_span_item {
    alloti_span span;
    uint64_t largest; /**< Largest span in its subtree of the tree by address. */
    uint32_t spare;   /**< Next unused item; valid while it holds no span. */
};

static int compare_address(const void *owner, uint32_t a, uint32_t b)
{
    const alloti_span_item *const items = owner;
    return alloti_order(items[a].span.address, items[b].span.address);
}

static int compare_size(const void *owner, uint32_t a, uint32_t b)
{
    const alloti_span_item *const items = owner;
    const int order = alloti_order(items[a].span.size, items[b].span.size);
    return order != 0 ? order : compare_address(owner, a, b);
}

static int key_address(const void *owner, const void *key, uint32_t item)
{
    return alloti_order(*(const uint64_t *)key,
                        ((const alloti_span_item *)owner)[item].span.address);
}

/** Sizes only: the first item that is not smaller is the lowest address of the best size. */
static int key_size(const void *owner, const void *key, uint32_t item)
{
    const uint64_t size = ((const alloti_span_item *)owner)[item].span.size;
    return *(const uint64_t *)key <= size ? -1 : 1;
}

/** What the tree by address needs to keep `largest`: items and links. */
typedef struct address_owner {
    alloti_span_item *items;
    const alloti_tree_node *nodes;
} address_owner;

static uint64_t largest_of(const alloti_span_item *items, uint32_t item)
{
    return item == NIL ? 0 : items[item].largest;
}

static int compare_in_owner(const void *owner, uint32_t a, uint32_t b)
{
    return compare_address(((const address_owner *)owner)->items, a, b);
}

static void update_largest(void *owner, uint32_t item)
{
    const address_owner *const o = owner;
    const uint64_t left = largest_of(o->items, o->nodes[item].left);
    const uint64_t right = largest_of(o->items, o->nodes[item].right);
    uint64_t largest = o->items[item].span.size;
    largest = left > largest ? left : largest;
    o->items[item].largest = right > largest ? right : largest;
}

static alloti_tree_host size_host(const alloti_span_set *set)
{
    return (alloti_tree_host){
        .nodes = set->nodes[BY_SIZE], .owner = set->items, .compare = compare_size};
}

/** `owner` has to outlive the host. */
static alloti_tree_host address_host(const alloti_span_set *set, address_owner *owner)
{
    *owner = (address_owner){.items = set->items, .nodes = set->nodes[BY_ADDRESS]};
    return (alloti_tree_host){.nodes = set->nodes[BY_ADDRESS],
                              .owner = owner,
                              .compare = compare_in_owner,
                              .update = update_largest};
}

void alloti_span_set_fini(alloti_span_set *set)
{
    free(set->items);
    free(set->nodes[BY_ADDRESS]);
    free(set->nodes[BY_SIZE]);
    *set = ALLOTI_SPAN_SET_EMPTY;
}

static allot_status item_take(alloti_span_set *set, uint32_t *out)
{
    if (set->spare != NIL) {
        assert(set->items != NULL && set->spare < set->used);
        *out = set->spare;
        set->spare = set->items[set->spare].spare;
        return ALLOT_STATUS_OK;
    }
    const uint64_t need = (uint64_t)set->used + 1;
    allot_status status =
        alloti_array_reserve(&set->items, &set->item_capacity, need, sizeof *set->items);
    for (int by = BY_ADDRESS; status == ALLOT_STATUS_OK && by <= BY_SIZE; by++) {
        status = alloti_array_reserve(&set->nodes[by], &set->node_capacity[by], need,
                                      sizeof *set->nodes[by]);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = set->used++;
    }
    return status;
}

allot_status alloti_span_set_add(alloti_span_set *set, alloti_span span)
{
    assert(span.size > 0);
    uint32_t item = NIL;
    const allot_status status = item_take(set, &item);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    assert(set->items != NULL && set->nodes[BY_ADDRESS] != NULL && set->nodes[BY_SIZE] != NULL);
    set->items[item] = (alloti_span_item){.span = span, .largest = span.size};
    for (int by = BY_ADDRESS; by <= BY_SIZE; by++) {
        set->nodes[by][item] = (alloti_tree_node){.parent = NIL, .left = NIL, .right = NIL};
    }
    address_owner owner;
    const alloti_tree_host by_address = address_host(set, &owner);
    const alloti_tree_host by_size = size_host(set);
    alloti_tree_insert(&set->trees[BY_ADDRESS], &by_address, item);
    alloti_tree_insert(&set->trees[BY_SIZE], &by_size, item);
    set->count++;
    set->bytes += span.size;
    return ALLOT_STATUS_OK;
}

/** First item at or above an address, NIL if none. */
static uint32_t ceiling_item(const alloti_span_set *set, uint64_t address)
{
    alloti_tree_host host = size_host(set);
    host.nodes = set->nodes[BY_ADDRESS];
    return alloti_tree_lower_bound(&set->trees[BY_ADDRESS], &host, &address, key_address);
}

void alloti_span_set_remove(alloti_span_set *set, uint64_t address)
{
    const uint32_t item = ceiling_item(set, address);
    assert(item != NIL && set->items[item].span.address == address);
    address_owner owner;
    const alloti_tree_host by_address = address_host(set, &owner);
    const alloti_tree_host by_size = size_host(set);
    alloti_tree_remove(&set->trees[BY_ADDRESS], &by_address, item);
    alloti_tree_remove(&set->trees[BY_SIZE], &by_size, item);
    set->count--;
    set->bytes -= set->items[item].span.size;
    set->items[item].spare = set->spare;
    set->spare = item;
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

static const alloti_span *span_of(const alloti_span_set *set, uint32_t item)
{
    return item == NIL ? NULL : &set->items[item].span;
}

const alloti_span *alloti_span_set_best_fit(const alloti_span_set *set, uint64_t size)
{
    const alloti_tree_host host = size_host(set);
    return span_of(set, alloti_tree_lower_bound(&set->trees[BY_SIZE], &host, &size, key_size));
}

const alloti_span *alloti_span_set_first_fit(const alloti_span_set *set, uint64_t size)
{
    uint32_t item = set->trees[BY_ADDRESS].root;
    if (largest_of(set->items, item) < size) {
        return NULL;
    }
    for (;;) {
        const alloti_tree_node *const node = &set->nodes[BY_ADDRESS][item];
        if (largest_of(set->items, node->left) >= size) {
            item = node->left;
        } else if (set->items[item].span.size >= size) {
            return &set->items[item].span;
        } else {
            item = node->right;
        }
    }
}

const alloti_span *alloti_span_set_floor(const alloti_span_set *set, uint64_t address)
{
    const uint32_t item = ceiling_item(set, address);
    if (item != NIL && set->items[item].span.address == address) {
        return span_of(set, item);
    }
    const alloti_tree_node *const nodes = set->nodes[BY_ADDRESS];
    return span_of(set, item == NIL ? alloti_tree_last(&set->trees[BY_ADDRESS], nodes)
                                    : alloti_tree_prev(nodes, item));
}

const alloti_span *alloti_span_set_ceiling(const alloti_span_set *set, uint64_t address)
{
    return span_of(set, ceiling_item(set, address));
}

uint64_t alloti_span_set_largest(const alloti_span_set *set)
{
    return largest_of(set->items, set->trees[BY_ADDRESS].root);
}

bool alloti_span_set_check(const alloti_span_set *set)
{
    address_owner owner;
    const alloti_tree_host by_address = address_host(set, &owner);
    const alloti_tree_host by_size = size_host(set);
    if (!alloti_tree_check(&set->trees[BY_ADDRESS], &by_address) ||
        !alloti_tree_check(&set->trees[BY_SIZE], &by_size) ||
        set->trees[BY_ADDRESS].count != set->count || set->trees[BY_SIZE].count != set->count) {
        return false;
    }
    uint64_t bytes = 0;
    uint64_t largest = 0;
    uint64_t end = 0;
    const alloti_tree_node *const nodes = set->nodes[BY_ADDRESS];
    for (uint32_t item = alloti_tree_first(&set->trees[BY_ADDRESS], nodes); item != NIL;
         item = alloti_tree_next(nodes, item)) {
        const alloti_span *const span = &set->items[item].span;
        if (span->address < end) {
            return false;
        }
        end = span->address + span->size;
        bytes += span->size;
        largest = span->size > largest ? span->size : largest;
    }
    return bytes == set->bytes && largest == alloti_span_set_largest(set);
}
