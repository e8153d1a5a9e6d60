/* SPDX-License-Identifier: MIT */
#include "core/tree.h"

#include <assert.h>

static uint32_t height_of(const alloti_tree_node *nodes, uint32_t item)
{
    return item == ALLOT_NONE ? 0 : nodes[item].height;
}

/** Height and augmentation of one item from its children. */
static void refresh(const alloti_tree_host *host, uint32_t item)
{
    alloti_tree_node *node = &host->nodes[item];
    const uint32_t left = height_of(host->nodes, node->left);
    const uint32_t right = height_of(host->nodes, node->right);
    node->height = 1 + (left > right ? left : right);
    if (host->update != NULL) {
        host->update(host->owner, item);
    }
}

/** Put `child` where `item` hung under `parent`. */
static void hang(alloti_tree *tree, alloti_tree_node *nodes, uint32_t parent, uint32_t item,
                 uint32_t child)
{
    if (parent == ALLOT_NONE) {
        tree->root = child;
    } else if (nodes[parent].left == item) {
        nodes[parent].left = child;
    } else {
        nodes[parent].right = child;
    }
    if (child != ALLOT_NONE) {
        nodes[child].parent = parent;
    }
}

/** Lift the left (or right) child over `item`; returns the child. */
static uint32_t rotate(alloti_tree *tree, const alloti_tree_host *host, uint32_t item, bool left)
{
    alloti_tree_node *nodes = host->nodes;
    const uint32_t child = left ? nodes[item].left : nodes[item].right;
    const uint32_t inner = left ? nodes[child].right : nodes[child].left;
    hang(tree, nodes, nodes[item].parent, item, child);
    if (left) {
        nodes[item].left = inner;
        nodes[child].right = item;
    } else {
        nodes[item].right = inner;
        nodes[child].left = item;
    }
    nodes[item].parent = child;
    if (inner != ALLOT_NONE) {
        nodes[inner].parent = item;
    }
    refresh(host, item);
    refresh(host, child);
    return child;
}

/** Restore the balance of one item whose children are right; returns the top of its subtree. */
static uint32_t rebalance(alloti_tree *tree, const alloti_tree_host *host, uint32_t item)
{
    alloti_tree_node *nodes = host->nodes;
    const uint32_t left = height_of(nodes, nodes[item].left);
    const uint32_t right = height_of(nodes, nodes[item].right);
    if (left > right + 1) {
        const uint32_t child = nodes[item].left;
        if (height_of(nodes, nodes[child].right) > height_of(nodes, nodes[child].left)) {
            rotate(tree, host, child, false);
        }
        return rotate(tree, host, item, true);
    }
    if (right > left + 1) {
        const uint32_t child = nodes[item].right;
        if (height_of(nodes, nodes[child].left) > height_of(nodes, nodes[child].right)) {
            rotate(tree, host, child, true);
        }
        return rotate(tree, host, item, false);
    }
    refresh(host, item);
    return item;
}

/** Rebalance from `item` up to the root, or to where nothing changes any more. */
static void climb(alloti_tree *tree, const alloti_tree_host *host, uint32_t item)
{
    while (item != ALLOT_NONE) {
        const uint32_t before = host->nodes[item].height;
        const uint32_t top = rebalance(tree, host, item);
        if (host->update == NULL && host->nodes[top].height == before) {
            return;
        }
        item = host->nodes[top].parent;
    }
}

void alloti_tree_insert(alloti_tree *tree, const alloti_tree_host *host, uint32_t item)
{
    alloti_tree_node *nodes = host->nodes;
    uint32_t parent = ALLOT_NONE;
    uint32_t at = tree->root;
    bool left = false;
    while (at != ALLOT_NONE) {
        parent = at;
        left = host->compare(host->owner, item, at) < 0;
        at = left ? nodes[at].left : nodes[at].right;
    }
    /* Height 0 lets climb() see that the new item changed the height of its place. */
    nodes[item] = (alloti_tree_node){.parent = parent, .left = ALLOT_NONE, .right = ALLOT_NONE};
    if (parent == ALLOT_NONE) {
        tree->root = item;
    } else if (left) {
        nodes[parent].left = item;
    } else {
        nodes[parent].right = item;
    }
    tree->count++;
    climb(tree, host, item);
}

/** Let `next`, the successor of `item` in its right subtree, take its place; returns where the
 * balance has to be restored from. */
static uint32_t replace_by_successor(alloti_tree *tree, const alloti_tree_host *host, uint32_t item,
                                     uint32_t next)
{
    alloti_tree_node *nodes = host->nodes;
    uint32_t from = nodes[next].parent;
    if (from == item) {
        from = next;
    } else {
        hang(tree, nodes, from, next, nodes[next].right);
        nodes[next].right = nodes[item].right;
        nodes[nodes[next].right].parent = next;
    }
    hang(tree, nodes, nodes[item].parent, item, next);
    nodes[next].left = nodes[item].left;
    nodes[nodes[next].left].parent = next;
    nodes[next].height = nodes[item].height;
    return from;
}

void alloti_tree_remove(alloti_tree *tree, const alloti_tree_host *host, uint32_t item)
{
    alloti_tree_node *nodes = host->nodes;
    assert(nodes[item].height != 0);
    uint32_t from = nodes[item].parent;
    if (nodes[item].left == ALLOT_NONE) {
        hang(tree, nodes, from, item, nodes[item].right);
    } else if (nodes[item].right == ALLOT_NONE) {
        hang(tree, nodes, from, item, nodes[item].left);
    } else {
        from = replace_by_successor(tree, host, item, alloti_tree_next(nodes, item));
    }
    nodes[item] = (alloti_tree_node){ALLOT_NONE, ALLOT_NONE, ALLOT_NONE, 0};
    tree->count--;
    climb(tree, host, from);
}

uint32_t alloti_tree_lower_bound(const alloti_tree *tree, const alloti_tree_host *host,
                                 const void *key, alloti_tree_compare_key compare)
{
    const alloti_tree_node *nodes = host->nodes;
    uint32_t best = ALLOT_NONE;
    uint32_t at = tree->root;
    while (at != ALLOT_NONE) {
        if (compare(host->owner, key, at) <= 0) {
            best = at;
            at = nodes[at].left;
        } else {
            at = nodes[at].right;
        }
    }
    return best;
}

static uint32_t leftmost(const alloti_tree_node *nodes, uint32_t item)
{
    while (nodes[item].left != ALLOT_NONE) {
        item = nodes[item].left;
    }
    return item;
}

static uint32_t rightmost(const alloti_tree_node *nodes, uint32_t item)
{
    while (nodes[item].right != ALLOT_NONE) {
        item = nodes[item].right;
    }
    return item;
}

uint32_t alloti_tree_first(const alloti_tree *tree, const alloti_tree_node *nodes)
{
    return tree->root == ALLOT_NONE ? ALLOT_NONE : leftmost(nodes, tree->root);
}

uint32_t alloti_tree_last(const alloti_tree *tree, const alloti_tree_node *nodes)
{
    return tree->root == ALLOT_NONE ? ALLOT_NONE : rightmost(nodes, tree->root);
}

uint32_t alloti_tree_next(const alloti_tree_node *nodes, uint32_t item)
{
    if (nodes[item].right != ALLOT_NONE) {
        return leftmost(nodes, nodes[item].right);
    }
    uint32_t parent = nodes[item].parent;
    while (parent != ALLOT_NONE && nodes[parent].right == item) {
        item = parent;
        parent = nodes[item].parent;
    }
    return parent;
}

uint32_t alloti_tree_prev(const alloti_tree_node *nodes, uint32_t item)
{
    if (nodes[item].left != ALLOT_NONE) {
        return rightmost(nodes, nodes[item].left);
    }
    uint32_t parent = nodes[item].parent;
    while (parent != ALLOT_NONE && nodes[parent].left == item) {
        item = parent;
        parent = nodes[item].parent;
    }
    return parent;
}

/** Links, heights and balance around one item. */
static bool node_check(const alloti_tree *tree, const alloti_tree_node *nodes, uint32_t item)
{
    const alloti_tree_node *node = &nodes[item];
    const uint32_t left = height_of(nodes, node->left);
    const uint32_t right = height_of(nodes, node->right);
    return (node->left == ALLOT_NONE || nodes[node->left].parent == item) &&
           (node->right == ALLOT_NONE || nodes[node->right].parent == item) &&
           (node->parent != ALLOT_NONE || tree->root == item) &&
           node->height == 1 + (left > right ? left : right) && left <= right + 1 &&
           right <= left + 1;
}

bool alloti_tree_check(const alloti_tree *tree, const alloti_tree_host *host)
{
    if (tree->root != ALLOT_NONE && host->nodes[tree->root].parent != ALLOT_NONE) {
        return false;
    }
    uint32_t seen = 0;
    uint32_t before = ALLOT_NONE;
    for (uint32_t at = alloti_tree_first(tree, host->nodes); at != ALLOT_NONE;
         at = alloti_tree_next(host->nodes, at)) {
        if (++seen > tree->count || !node_check(tree, host->nodes, at) ||
            (before != ALLOT_NONE && host->compare(host->owner, before, at) >= 0)) {
            return false;
        }
        before = at;
    }
    return seen == tree->count;
}
