// SPDX-License-Identifier: MIT
// RMM's pool, alone ("pool") or behind bins of fixed sizes from 256 B to 4 MiB ("binning"), in one
// region that is reserved and never touched.
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <optional>
#include <rmm/logger.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include "peer.h"

namespace
{

enum { BIN_MIN_LOG2 = 8, BIN_MAX_LOG2 = 22 };
bool has_bins;
const cuda::stream_ref STREAM{cudaStream_t{nullptr}};

void *reserve(std::size_t size, cuda::stream_ref, void *base)
{
    void *const got = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        throw std::bad_alloc();
    }
    *static_cast<uint64_t *>(base) = reinterpret_cast<uint64_t>(got);
    return got;
}

void unreserve(void *region, std::size_t size, cuda::stream_ref, void *)
{
    munmap(region, size);
}

class Rmm
{
  public:
    explicit Rmm(uint64_t capacity)
        : pool(rmm::mr::callback_memory_resource(reserve, unreserve, &base, nullptr), capacity,
               capacity)
    {
        if (has_bins) {
            bins.emplace(pool, BIN_MIN_LOG2, BIN_MAX_LOG2);
        }
    }

    void *allocate(size_t size)
    {
        return bins ? bins->allocate(STREAM, size, PEER_ALIGN)
                    : pool.allocate(STREAM, size, PEER_ALIGN);
    }

    void deallocate(void *block, size_t size)
    {
        bins ? bins->deallocate(STREAM, block, size, PEER_ALIGN)
             : pool.deallocate(STREAM, block, size, PEER_ALIGN);
    }

    uint64_t base = 0;

  private:
    rmm::mr::pool_memory_resource pool;
    std::optional<rmm::mr::binning_memory_resource> bins;
};

// RMM wants the size back, so a block is its distance from the region and its size, in units.
enum { UNITS_BITS = 24 };

uint64_t distance_of(uint64_t block)
{
    return (block >> UNITS_BITS) * PEER_ALIGN;
}

uint64_t size_of(uint64_t block)
{
    return (block & ((1u << UNITS_BITS) - 1)) * PEER_ALIGN;
}

void *create(uint64_t capacity)
{
    return new Rmm(capacity);
}

void destroy(void *self)
{
    delete static_cast<Rmm *>(self);
}

uint64_t alloc(void *self, uint64_t size)
{
    auto *const rmm = static_cast<Rmm *>(self);
    try {
        const auto distance = reinterpret_cast<uint64_t>(rmm->allocate(size)) - rmm->base;
        return (distance / PEER_ALIGN << UNITS_BITS) | size / PEER_ALIGN;
    } catch (const std::bad_alloc &) {
        return PEER_REFUSED;
    }
}

void release(void *self, uint64_t block)
{
    auto *const rmm = static_cast<Rmm *>(self);
    rmm->deallocate(reinterpret_cast<void *>(rmm->base + distance_of(block)), size_of(block));
}

uint64_t offset(void *, uint64_t block)
{
    return distance_of(block);
}

const peer_ops OPS = {create, destroy, alloc, release, offset, nullptr};

} // namespace

const peer_ops *peer_open(const char *config, const char **reason)
{
    // A refusal is an answer; without this, each would be logged.
    rmm::default_logger().set_level(rapids_logger::level_enum::off);
    has_bins = std::strcmp(config, "binning") == 0;
    if (!has_bins && std::strcmp(config, "pool") != 0) {
        *reason = "no such allocator";
        return nullptr;
    }
    return &OPS;
}
