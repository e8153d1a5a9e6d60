/* SPDX-License-Identifier: MIT */
#include "slow_torch.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)
#define NOWHERE UINT64_MAX

static void *grow(void *data, uint64_t *capacity, uint64_t need, size_t size)
{
    if (need > *capacity) {
        *capacity = 2 * need + 16;
        data = realloc(data, (size_t)*capacity * size);
        if (data == NULL) {
            abort();
        }
    }
    return data;
}

void slow_init(slow_torch *slow, const allot_torch_conf *conf, uint64_t limit, double fraction)
{
    memset(slow, 0, sizeof(*slow));
    slow->conf = *conf;
    slow->limit = limit;
    slow->allowed =
        fraction > 0 && fraction < 1 ? (uint64_t)(fraction * (double)limit) : UINT64_MAX;
    slow->next_address = 0x7f0000000000ull;
}

void slow_fini(slow_torch *slow)
{
    free(slow->blocks);
    free(slow->waiting);
    free(slow->events);
}

static void say(slow_torch *slow, allot_event_kind kind, uint64_t address, uint64_t size,
                uint64_t stream)
{
    slow->events =
        grow(slow->events, &slow->event_capacity, slow->event_count + 1, sizeof(*slow->events));
    slow->events[slow->event_count++] =
        (allot_torch_event){.kind = kind, .address = address, .size = size, .stream = stream};
}

/** Put a block into the list, which stays sorted. */
static uint64_t put(slow_torch *slow, slow_block block)
{
    slow->blocks = grow(slow->blocks, &slow->capacity, slow->count + 1, sizeof(*slow->blocks));
    uint64_t at = slow->count;
    while (at > 0 && slow->blocks[at - 1].address > block.address) {
        slow->blocks[at] = slow->blocks[at - 1];
        at--;
    }
    slow->blocks[at] = block;
    slow->count++;
    return at;
}

static void cut(slow_torch *slow, uint64_t at)
{
    memmove(&slow->blocks[at], &slow->blocks[at + 1],
            (size_t)(slow->count - at - 1) * sizeof(*slow->blocks));
    slow->count--;
}

static uint64_t find(const slow_torch *slow, uint64_t address)
{
    for (uint64_t i = 0; i < slow->count; i++) {
        if (slow->blocks[i].address == address) {
            return i;
        }
    }
    abort();
}

static bool together(const slow_torch *slow, uint64_t low)
{
    return low + 1 < slow->count && slow->blocks[low].segment == slow->blocks[low + 1].segment &&
           slow->blocks[low].address + slow->blocks[low].size == slow->blocks[low + 1].address;
}

/** Join free neighbours until none are left; what grows counts as cached now. */
static void join(slow_torch *slow, uint64_t address)
{
    uint64_t at = find(slow, address);
    slow_block *block = &slow->blocks[at];
    block->cached_at = slow->searches[block->pool][block->large];
    if (together(slow, at) && slow->blocks[at + 1].state == SLOW_FREE &&
        slow->blocks[at + 1].mapped == block->mapped) {
        block->size += slow->blocks[at + 1].size;
        cut(slow, at + 1);
    }
    if (at > 0 && together(slow, at - 1) && slow->blocks[at - 1].state == SLOW_FREE &&
        slow->blocks[at - 1].mapped == slow->blocks[at].mapped) {
        slow->blocks[at - 1].size += slow->blocks[at].size;
        slow->blocks[at - 1].cached_at = slow->blocks[at].cached_at;
        cut(slow, at);
    }
}

static uint64_t up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static uint64_t rounded(const slow_torch *slow, uint64_t size)
{
    if (size < 512) {
        return 512;
    }
    int interval = 0;
    while (interval < 15 && size >= (2 * MIB << interval)) {
        interval++;
    }
    const uint64_t parts = slow->conf.roundup_power2_divisions[interval];
    if (parts <= 1 || size <= 512 * parts) {
        return up(size, 512);
    }
    uint64_t power = 1;
    while (2 * power <= size) {
        power *= 2;
    }
    return power == size ? size : power + up(size - power, power / parts);
}

static bool whole_segment(const slow_torch *slow, uint64_t at)
{
    return !together(slow, at) && (at == 0 || !together(slow, at - 1));
}

/** A request on its way. */
typedef struct want {
    uint64_t size;
    uint64_t stream;
    int pool;
    bool large;
    bool classic; /**< Of classic segments only, split as they are. */
} want;

static bool is_for(const slow_block *block, const want *wanted)
{
    return block->state == SLOW_FREE && block->mapped && block->pool == wanted->pool &&
           block->large == wanted->large && block->stream == wanted->stream;
}

static bool has_bit(uint32_t bits, int pool)
{
    return pool > 0 && (bits >> (pool - 1) & 1) != 0;
}

static bool smaller(const slow_block *a, const slow_block *b)
{
    return a->size != b->size ? a->size < b->size : a->address < b->address;
}

/** The next larger cached block after `after` (NOWHERE: the smallest that is large enough). */
static uint64_t next_fit(const slow_torch *slow, const want *wanted, uint64_t after)
{
    uint64_t best = NOWHERE;
    for (uint64_t i = 0; i < slow->count; i++) {
        const slow_block *block = &slow->blocks[i];
        if (is_for(block, wanted) && block->size >= wanted->size &&
            (after == NOWHERE || smaller(&slow->blocks[after], block)) &&
            (best == NOWHERE || smaller(block, &slow->blocks[best]))) {
            best = i;
        }
    }
    return best;
}

static uint64_t reach(const slow_torch *slow, uint64_t at)
{
    const bool grows = together(slow, at) && !slow->blocks[at + 1].mapped;
    return slow->blocks[at].size + (grows ? slow->blocks[at + 1].size : 0);
}

static uint64_t search(slow_torch *slow, const want *wanted)
{
    if (slow->allowed != UINT64_MAX && slow->conf.garbage_collection_threshold > 0) {
        slow->searches[wanted->pool][wanted->large]++;
    }
    uint64_t at = next_fit(slow, wanted, NOWHERE);
    while (wanted->classic && at != NOWHERE && slow->blocks[at].range != 0) {
        at = next_fit(slow, wanted, at);
    }
    if (at == NOWHERE) {
        return NOWHERE;
    }
    for (uint64_t next = next_fit(slow, wanted, at);
         slow->blocks[at].range != 0 && next != NOWHERE && reach(slow, next) < reach(slow, at);
         next = next_fit(slow, wanted, at)) {
        at = next;
    }
    const uint64_t size = slow->blocks[at].size;
    if (wanted->size < slow->conf.max_split_size) {
        return size >= slow->conf.max_split_size ? NOWHERE : at;
    }
    return size >= wanted->size + slow->conf.max_non_split_rounding ? NOWHERE : at;
}

static bool take_bytes(slow_torch *slow, uint64_t size)
{
    if (slow->held + size > slow->limit) {
        return false;
    }
    slow->held += size;
    return true;
}

/** Map from the start of an unmapped block; false if the device is full. */
static bool map(slow_torch *slow, uint64_t at, uint64_t size)
{
    slow_block block = slow->blocks[at];
    const uint64_t bytes = up(size, block.large ? slow->conf.large_segment_size : 2 * MIB);
    if (!take_bytes(slow, bytes)) {
        return false;
    }
    if (bytes < block.size) {
        slow_block rest = block;
        rest.address += bytes;
        rest.size -= bytes;
        slow->blocks[at].size = bytes;
        put(slow, rest);
    }
    slow->blocks[at].mapped = true;
    join(slow, block.address);
    say(slow, ALLOT_EVENT_SEGMENT_MAP, block.address, bytes, block.stream);
    return true;
}

/** Where free and unmapped blocks in a row give room, from the lowest unmapped one on. */
static uint64_t place(const slow_torch *slow, const want *wanted)
{
    for (uint64_t i = 0; i < slow->count; i++) {
        const slow_block *block = &slow->blocks[i];
        if (block->mapped || block->pool != wanted->pool || block->large != wanted->large ||
            block->stream != wanted->stream) {
            continue;
        }
        const uint64_t start =
            i > 0 && together(slow, i - 1) && slow->blocks[i - 1].state == SLOW_FREE ? i - 1 : i;
        uint64_t bytes = 0;
        for (uint64_t k = start; bytes < wanted->size; k++) {
            if (slow->blocks[k].state != SLOW_FREE) {
                break;
            }
            bytes += slow->blocks[k].size;
            if (!together(slow, k)) {
                break;
            }
        }
        if (bytes >= wanted->size) {
            return start;
        }
    }
    return NOWHERE;
}

static uint64_t expand(slow_torch *slow, const want *wanted)
{
    uint64_t at = place(slow, wanted);
    if (at == NOWHERE) {
        const uint64_t page = wanted->large ? slow->conf.large_segment_size : 2 * MIB;
        const uint64_t size = up(slow->limit + slow->limit / 8, page);
        const uint64_t start = slow->next_address;
        slow->next_address += up(size, 2 * MIB);
        if (size < wanted->size) {
            return NOWHERE; /* Reserved in vain. */
        }
        at = put(slow, (slow_block){.address = start,
                                    .size = size,
                                    .segment = start,
                                    .range = size,
                                    .stream = wanted->stream,
                                    .pool = wanted->pool,
                                    .large = wanted->large});
    }
    uint64_t address = slow->blocks[at].address;
    for (;;) {
        at = find(slow, address);
        const slow_block *block = &slow->blocks[at];
        if (block->mapped && block->size >= wanted->size) {
            return at;
        }
        const uint64_t target = block->mapped ? at + 1 : at;
        const uint64_t missing = block->mapped ? wanted->size - block->size : wanted->size;
        const uint64_t size = slow->blocks[target].size;
        if (!map(slow, target, missing < size ? missing : size)) {
            return NOWHERE;
        }
        /* The mapped part may have joined a free block before it. */
        while (at > 0 && at >= slow->count) {
            at--;
        }
        for (uint64_t i = 0; i < slow->count; i++) {
            if (slow->blocks[i].address <= address &&
                address < slow->blocks[i].address + slow->blocks[i].size) {
                address = slow->blocks[i].address;
            }
        }
    }
}

static uint64_t segment_size(const slow_torch *slow, const want *wanted)
{
    if (!wanted->large) {
        return 2 * MIB;
    }
    return wanted->size < 10 * MIB ? slow->conf.large_segment_size : up(wanted->size, 2 * MIB);
}

static uint64_t obtain(slow_torch *slow, const want *wanted)
{
    const uint64_t size = segment_size(slow, wanted);
    if (slow->allowed != UINT64_MAX && slow->held + size > slow->allowed) {
        return NOWHERE;
    }
    if (slow->conf.expandable_segments) {
        return expand(slow, wanted);
    }
    if (!take_bytes(slow, size)) {
        return NOWHERE;
    }
    const slow_block block = {.address = slow->next_address,
                              .size = size,
                              .segment = slow->next_address,
                              .stream = wanted->stream,
                              .pool = wanted->pool,
                              .large = wanted->large,
                              .mapped = true};
    slow->next_address += up(size, 2 * MIB);
    say(slow, ALLOT_EVENT_SEGMENT_ALLOC, block.address, size, block.stream);
    return put(slow, block);
}

static void give_segment(slow_torch *slow, uint64_t at)
{
    const slow_block block = slow->blocks[at];
    say(slow, ALLOT_EVENT_SEGMENT_FREE, block.address, block.size, block.stream);
    slow->held -= block.size;
    cut(slow, at);
}

static void unmap(slow_torch *slow, uint64_t at)
{
    const slow_block block = slow->blocks[at];
    const uint64_t page = block.large ? slow->conf.large_segment_size : 2 * MIB;
    const uint64_t start = block.segment + up(block.address - block.segment, page);
    const uint64_t end = block.segment + (block.address + block.size - block.segment) / page * page;
    if (start >= end) {
        return;
    }
    slow_block piece = block;
    cut(slow, at);
    piece.cached_at = slow->searches[piece.pool][piece.large];
    if (start > block.address) {
        piece.size = start - block.address;
        put(slow, piece);
    }
    if (end < block.address + block.size) {
        piece.address = end;
        piece.size = block.address + block.size - end;
        put(slow, piece);
    }
    piece.address = start;
    piece.size = end - start;
    piece.mapped = false;
    put(slow, piece);
    join(slow, start);
    slow->held -= end - start;
    say(slow, ALLOT_EVENT_SEGMENT_UNMAP, start, end - start, block.stream);
    for (uint64_t i = 0; i < slow->count; i++) {
        if (slow->blocks[i].segment == block.segment && slow->blocks[i].size == block.range) {
            cut(slow, i);
            return;
        }
    }
}

/** Cached blocks of the default pool's half in the order (stream, size, address). [return count] */
static uint64_t in_order(const slow_torch *slow, bool large, uint64_t *addresses)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < slow->count; i++) {
        const slow_block *block = &slow->blocks[i];
        if (block->state != SLOW_FREE || !block->mapped || block->pool != 0 ||
            block->large != large) {
            continue;
        }
        uint64_t at = count++;
        for (; at > 0; at--) {
            const slow_block *other = &slow->blocks[find(slow, addresses[at - 1])];
            if (other->stream < block->stream ||
                (other->stream == block->stream && smaller(other, block))) {
                break;
            }
            addresses[at] = addresses[at - 1];
        }
        addresses[at] = block->address;
    }
    return count;
}

static void complete(slow_torch *slow, uint64_t address)
{
    slow_block *block = &slow->blocks[find(slow, address)];
    say(slow, ALLOT_EVENT_FREE_COMPLETED, address, block->requested, block->stream);
    block->state = SLOW_FREE;
    join(slow, address);
}

/** Complete those that wait, oldest first, for which `chosen` holds. */
static void complete_some(slow_torch *slow, bool (*chosen)(const slow_block *block, int pool),
                          int pool)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < slow->waiting_count; i++) {
        const uint64_t address = slow->waiting[i];
        if (chosen(&slow->blocks[find(slow, address)], pool)) {
            complete(slow, address);
        } else {
            slow->waiting[kept++] = address;
        }
    }
    slow->waiting_count = kept;
}

static bool any(const slow_block *block, int pool)
{
    (void)block, (void)pool;
    return true;
}

static bool needs_no_event(const slow_block *block, int pool)
{
    (void)pool;
    return block->deferred && !block->used;
}

static bool is_deferred_in(const slow_block *block, int pool)
{
    return block->deferred && block->pool == pool;
}

void slow_empty(slow_torch *slow)
{
    complete_some(slow, any, 0);
    uint64_t *addresses = malloc((size_t)(slow->count + 1) * sizeof(*addresses));
    for (int large = 1; large >= 0; large--) {
        const uint64_t count = in_order(slow, large == 1, addresses);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t at = find(slow, addresses[i]);
            if (slow->blocks[at].range == 0 && whole_segment(slow, at)) {
                give_segment(slow, at);
            } else if (slow->blocks[at].range == 0) {
                addresses[i] = 0;
            }
        }
        for (uint64_t i = 0; i < count; i++) {
            for (uint64_t at = 0; at < slow->count; at++) {
                if (slow->blocks[at].address == addresses[i] && slow->blocks[at].range != 0 &&
                    slow->blocks[at].mapped) {
                    unmap(slow, at);
                    break;
                }
            }
        }
    }
    free(addresses);
}

static void collect(slow_torch *slow)
{
    const uint64_t threshold =
        (uint64_t)(slow->conf.garbage_collection_threshold * (double)slow->allowed);
    if (slow->held <= threshold) {
        return;
    }
    const uint64_t target = slow->held - threshold;
    uint64_t *addresses = malloc((size_t)(slow->count + 1) * sizeof(*addresses));
    uint64_t count = in_order(slow, true, addresses);
    uint64_t total = 0;
    uint64_t whole = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = find(slow, addresses[i]);
        if (whole_segment(slow, at)) {
            total += slow->searches[0][1] - slow->blocks[at].cached_at;
            whole++;
        }
    }
    uint64_t freed = 0;
    for (bool any = true; any && freed < target && whole > 0;) {
        const double average = (double)total / (double)whole;
        any = false;
        count = in_order(slow, true, addresses);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t at = find(slow, addresses[i]);
            const uint64_t age = slow->searches[0][1] - slow->blocks[at].cached_at;
            if (whole_segment(slow, at) && slow->blocks[at].range == 0 && (double)age >= average) {
                freed += slow->blocks[at].size;
                total -= age;
                whole--;
                any = true;
                give_segment(slow, at);
            }
        }
    }
    free(addresses);
}

/** The largest cached oversize block of the request's list below `below`; NOWHERE if none. */
static uint64_t largest_oversize(const slow_torch *slow, const want *wanted,
                                 const slow_block *below)
{
    uint64_t best = NOWHERE;
    for (uint64_t i = 0; i < slow->count; i++) {
        const slow_block *block = &slow->blocks[i];
        if (is_for(block, wanted) && block->size >= slow->conf.max_split_size &&
            (below == NULL || smaller(block, below)) &&
            (best == NOWHERE || smaller(&slow->blocks[best], block))) {
            best = i;
        }
    }
    return best;
}

static bool release_oversize(slow_torch *slow, const want *wanted)
{
    if (slow->conf.max_split_size == ALLOT_TORCH_UNLIMITED) {
        return false;
    }
    want key = *wanted;
    key.size = key.size < slow->conf.max_split_size ? slow->conf.max_split_size : key.size;
    const uint64_t fit = next_fit(slow, &key, NOWHERE);
    if (fit != NOWHERE && slow->blocks[fit].range == 0 && whole_segment(slow, fit)) {
        give_segment(slow, fit);
        return true;
    }
    uint64_t bytes = 0;
    slow_block below = {.size = UINT64_MAX};
    if (fit != NOWHERE) {
        below = slow->blocks[fit];
    }
    for (uint64_t at = largest_oversize(slow, wanted, &below); at != NOWHERE && bytes < key.size;
         at = largest_oversize(slow, wanted, &below)) {
        below = slow->blocks[at];
        if (below.range == 0 && whole_segment(slow, at)) {
            bytes += below.size;
            give_segment(slow, at);
        }
    }
    return bytes >= key.size;
}

/** Of the pools that offer themselves; *wanted becomes a request to the one that serves. */
static uint64_t borrow(slow_torch *slow, want *wanted)
{
    for (int pool = 1; wanted->pool == 0 && pool <= 32; pool++) {
        if (has_bit(slow->offers, pool)) {
            want other = *wanted;
            other.pool = pool;
            other.classic = true;
            const uint64_t at = search(slow, &other);
            if (at != NOWHERE) {
                *wanted = other;
                return at;
            }
        }
    }
    return NOWHERE;
}

/** Requests to a graph's pool are made in its capture. */
static bool is_capture(const slow_torch *slow, int pool)
{
    return has_bit(slow->graphs, pool);
}

static uint64_t serve(slow_torch *slow, want *wanted)
{
    uint64_t at = search(slow, wanted);
    if (at != NOWHERE) {
        return at;
    }
    if (slow->allowed != UINT64_MAX && slow->conf.garbage_collection_threshold > 0) {
        collect(slow);
    }
    at = obtain(slow, wanted);
    if (at == NOWHERE) {
        at = borrow(slow, wanted);
    }
    if (at == NOWHERE && release_oversize(slow, wanted)) {
        at = obtain(slow, wanted);
    }
    if (at == NOWHERE && !is_capture(slow, wanted->pool)) {
        slow_empty(slow);
        slow->retry_count++;
        at = obtain(slow, wanted);
    }
    return at;
}

uint64_t slow_alloc(slow_torch *slow, uint64_t size, uint64_t stream, int pool)
{
    if (!is_capture(slow, pool)) {
        complete_some(slow, needs_no_event, 0);
        complete_some(slow, any, 0);
    }
    want wanted = {.size = rounded(slow, size), .stream = stream, .pool = pool};
    wanted.large = wanted.size > MIB;
    const uint64_t at = serve(slow, &wanted);
    if (at == NOWHERE) {
        say(slow, ALLOT_EVENT_OOM, slow->limit - slow->held, wanted.size, stream);
        return 0;
    }
    slow_block *block = &slow->blocks[at];
    const uint64_t rest = block->size - wanted.size;
    const bool fine = !wanted.large || (slow->conf.expandable_segments && !wanted.classic);
    const bool splits =
        !has_bit(slow->whole, wanted.pool) &&
        (fine ? rest >= 512 : rest > MIB && wanted.size < slow->conf.max_split_size);
    block->state = SLOW_USED;
    block->used = block->used_in_capture = block->deferred = false;
    block->requested = size;
    const uint64_t address = block->address;
    if (splits) {
        slow_block free_part = *block;
        block->size = wanted.size;
        free_part.address += wanted.size;
        free_part.size = rest;
        free_part.state = SLOW_FREE;
        free_part.cached_at = slow->searches[wanted.pool][wanted.large];
        put(slow, free_part);
    }
    say(slow, ALLOT_EVENT_ALLOC, address, size, stream);
    return address;
}

void slow_use(slow_torch *slow, uint64_t address)
{
    slow_block *block = &slow->blocks[find(slow, address)];
    *(slow->captures > 0 ? &block->used_in_capture : &block->used) = true;
}

void slow_begin(slow_torch *slow)
{
    slow->captures++;
}

void slow_end(slow_torch *slow, int pool)
{
    slow->captures--;
    if (slow->conf.graph_capture_record_stream_reuse) {
        complete_some(slow, is_deferred_in, pool);
    }
}

void slow_free(slow_torch *slow, uint64_t address)
{
    slow_block *block = &slow->blocks[find(slow, address)];
    say(slow, ALLOT_EVENT_FREE_REQUESTED, address, block->requested, block->stream);
    if (!block->used && !block->used_in_capture) {
        complete(slow, address);
        return;
    }
    block->state = SLOW_WAITS;
    block->deferred = slow->captures > 0;
    slow->waiting = realloc(slow->waiting, (size_t)(slow->waiting_count + 1) * sizeof(uint64_t));
    if (slow->waiting == NULL) {
        abort();
    }
    slow->waiting[slow->waiting_count++] = address;
}
