/* SPDX-License-Identifier: MIT */
/* Random insertions and removals: order, balance, neighbours and augmentation after each. */
#include "core/tree.h"

#include "support/check.h"

enum { ITEM_COUNT = 300, STEP_COUNT = 4000 };

typedef struct items {
    uint64_t key[ITEM_COUNT];
    uint64_t largest[ITEM_COUNT]; /**< Augmentation: the largest weight in the subtree. */
    uint64_t weight[ITEM_COUNT];
    alloti_tree_node nodes[ITEM_COUNT];
} items;

static int compare(const void *owner, uint32_t a, uint32_t b)
{
    const items *all = owner;
    return (all->key[a] > all->key[b]) - (all->key[a] < all->key[b]);
}

static int compare_key(const void *owner, const void *key, uint32_t item)
{
    const uint64_t wanted = *(const uint64_t *)key;
    const uint64_t have = ((const items *)owner)->key[item];
    return (wanted > have) - (wanted < have);
}

static void update(void *owner, uint32_t item)
{
    items *all = owner;
    uint64_t largest = all->weight[item];
    const uint32_t children[] = {all->nodes[item].left, all->nodes[item].right};
    for (int i = 0; i < 2; i++) {
        if (children[i] != ALLOT_NONE && all->largest[children[i]] > largest) {
            largest = all->largest[children[i]];
        }
    }
    all->largest[item] = largest;
}

/** What a look at every item says. */
static void check_against_a_scan(const items *all, const alloti_tree *tree,
                                 const alloti_tree_host *host, uint64_t key)
{
    uint32_t expected = ALLOT_NONE;
    uint32_t count = 0;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < ITEM_COUNT; i++) {
        if (!alloti_tree_has(all->nodes, i)) {
            continue;
        }
        count++;
        largest = all->weight[i] > largest ? all->weight[i] : largest;
        if (all->key[i] >= key && (expected == ALLOT_NONE || all->key[i] < all->key[expected])) {
            expected = i;
        }
    }
    CHECK_EQ(tree->count, count);
    CHECK_EQ(alloti_tree_lower_bound(tree, host, &key, compare_key), expected);
    if (host->update != NULL && count > 0) {
        CHECK_EQ(all->largest[tree->root], largest);
    }
}

static void run_random(bool augmented)
{
    static items all;
    uint64_t state = check_seed() + augmented;
    for (uint32_t i = 0; i < ITEM_COUNT; i++) {
        all.key[i] = check_random(&state) * ITEM_COUNT + i;
        all.weight[i] = check_random_range(&state, 0, 1000);
        all.nodes[i].height = 0;
    }
    const alloti_tree_host host = {
        .nodes = all.nodes, .owner = &all, .compare = compare, .update = augmented ? update : NULL};
    alloti_tree tree = ALLOTI_TREE_INIT;
    for (int i = 0; i < STEP_COUNT; i++) {
        const uint32_t item = (uint32_t)check_random_range(&state, 0, ITEM_COUNT - 1);
        if (!alloti_tree_has(all.nodes, item)) {
            alloti_tree_insert(&tree, &host, item);
        } else if (augmented && check_random_range(&state, 0, 1) == 0) {
            alloti_tree_remove(&tree, &host, item);
            all.weight[item] = check_random_range(&state, 0, 1000);
            alloti_tree_insert(&tree, &host, item);
        } else {
            alloti_tree_remove(&tree, &host, item);
        }
        REQUIRE(alloti_tree_check(&tree, &host));
        check_against_a_scan(&all, &tree, &host, check_random(&state));
    }
}

static void keeps_order_and_balance(void)
{
    run_random(false);
}

static void keeps_the_augmentation(void)
{
    run_random(true);
}

static void walks_both_ways(void)
{
    static items all;
    const alloti_tree_host host = {.nodes = all.nodes, .owner = &all, .compare = compare};
    alloti_tree tree = ALLOTI_TREE_INIT;
    CHECK_EQ(alloti_tree_first(&tree, all.nodes), ALLOT_NONE);
    CHECK_EQ(alloti_tree_last(&tree, all.nodes), ALLOT_NONE);
    for (uint32_t i = 0; i < ITEM_COUNT; i++) {
        all.key[i] = (i * 7919ull) % ITEM_COUNT;
        all.nodes[i].height = 0;
        alloti_tree_insert(&tree, &host, i);
    }
    uint64_t expected = 0;
    for (uint32_t at = alloti_tree_first(&tree, all.nodes); at != ALLOT_NONE;
         at = alloti_tree_next(all.nodes, at)) {
        CHECK_EQ(all.key[at], expected++);
    }
    CHECK_EQ(expected, ITEM_COUNT);
    for (uint32_t at = alloti_tree_last(&tree, all.nodes); at != ALLOT_NONE;
         at = alloti_tree_prev(all.nodes, at)) {
        CHECK_EQ(all.key[at], --expected);
    }
    CHECK_EQ(expected, 0);
}

static void the_check_sees_damage(void)
{
    static items all;
    const alloti_tree_host host = {.nodes = all.nodes, .owner = &all, .compare = compare};
    alloti_tree tree = ALLOTI_TREE_INIT;
    for (uint32_t i = 0; i < 20; i++) {
        all.key[i] = i;
        all.nodes[i].height = 0;
        alloti_tree_insert(&tree, &host, i);
    }
    REQUIRE(alloti_tree_check(&tree, &host));
    all.key[7] = 100;
    CHECK(!alloti_tree_check(&tree, &host));
    all.key[7] = 7;
    all.nodes[tree.root].height++;
    CHECK(!alloti_tree_check(&tree, &host));
    all.nodes[tree.root].height--;
    tree.count++;
    CHECK(!alloti_tree_check(&tree, &host));
}

static const check_test TESTS[] = {
    {"keeps_order_and_balance", keeps_order_and_balance},
    {"keeps_the_augmentation", keeps_the_augmentation},
    {"walks_both_ways", walks_both_ways},
    {"the_check_sees_damage", the_check_sees_damage},
};
CHECK_MAIN(TESTS)
