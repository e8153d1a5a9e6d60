/* SPDX-License-Identifier: MIT */
/**
 * Balanced search trees over items that lie in arrays and are named by 32-bit indices.
 *
 * The owner keeps one alloti_tree_node per item in an array of its own, so one item can be in
 * several trees by having several node arrays, and a copy of the arrays is a copy of the trees.
 * The tree never allocates. Height-balanced (Adelson-Velsky and Landis, 1962): the heights of two
 * siblings differ by at most one, so every operation but check() is O(log n).
 *
 * `update` makes augmented trees: it is called for each item whose subtree changed, children
 * first, and recomputes what the owner keeps per subtree.
 */
#ifndef ALLOTI_CORE_TREE_H
#define ALLOTI_CORE_TREE_H

#include <allot/base.h>

typedef struct alloti_tree_node {
    uint32_t parent; /**< ALLOT_NONE at the root. */
    uint32_t left;
    uint32_t right;
    uint32_t height; /**< 1 for a leaf, 0 for an item that is in no tree. */
} alloti_tree_node;

/** Zero-initialised trees are not empty: use ALLOTI_TREE_INIT. */
typedef struct alloti_tree {
    uint32_t root;
    uint32_t count;
} alloti_tree;

#define ALLOTI_TREE_INIT ((alloti_tree){.root = ALLOT_NONE, .count = 0})

/** Whose trees they are; made anew for each call, as the owner's arrays may move. */
typedef struct alloti_tree_host {
    alloti_tree_node *nodes;
    void *owner;
    /** Order of two items: below, equal or above 0. Items in one tree are never equal. */
    int (*compare)(const void *owner, uint32_t a, uint32_t b);
    void (*update)(void *owner, uint32_t item); /**< (optional) Subtree of `item` changed. */
} alloti_tree_host;

/** Order of a key and an item: below 0 if the key comes first. */
typedef int (*alloti_tree_compare_key)(const void *owner, const void *key, uint32_t item);

/** Add an item that is in no tree of these nodes. */
void alloti_tree_insert(alloti_tree *tree, const alloti_tree_host *host, uint32_t item);

/** Take an item out; its node is then marked as being in no tree. */
void alloti_tree_remove(alloti_tree *tree, const alloti_tree_host *host, uint32_t item);

/** First item that is not before the key; ALLOT_NONE if all are. */
uint32_t alloti_tree_lower_bound(const alloti_tree *tree, const alloti_tree_host *host,
                                 const void *key, alloti_tree_compare_key compare);

/** Ends and neighbours in order; ALLOT_NONE beyond them. */
uint32_t alloti_tree_first(const alloti_tree *tree, const alloti_tree_node *nodes);
uint32_t alloti_tree_last(const alloti_tree *tree, const alloti_tree_node *nodes);
uint32_t alloti_tree_next(const alloti_tree_node *nodes, uint32_t item);
uint32_t alloti_tree_prev(const alloti_tree_node *nodes, uint32_t item);

/** Whether an item is in a tree of these nodes. */
static inline bool alloti_tree_has(const alloti_tree_node *nodes, uint32_t item)
{
    return nodes[item].height != 0;
}

/** Links, order, heights, balance and count are right. O(n). */
bool alloti_tree_check(const alloti_tree *tree, const alloti_tree_host *host);

#endif /* ALLOTI_CORE_TREE_H */
