// SPDX-License-Identifier: MIT
// TensorFlow's (XLA's) best fit with coalescing, in one region that is reserved at the first
// request and never touched.
#include <sys/mman.h>

#include <memory>

#include "peer.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace
{

class Region final : public tsl::SubAllocator
{
  public:
    Region() : tsl::SubAllocator({}, {})
    {
    }

    void *Alloc(size_t, size_t size, size_t *received) override
    {
        void *const got = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) {
            return nullptr;
        }
        *received = size;
        return got;
    }

    void Free(void *region, size_t size) override
    {
        munmap(region, size);
    }
    bool SupportsCoalescing() const override
    {
        return false;
    }
};

// Blocks are told by their distance from the region, which the first one begins.
struct Bfc {
    std::unique_ptr<tsl::BFCAllocator> allocator;
    uint64_t base = 0;
};

void *create(uint64_t capacity)
{
    tsl::BFCAllocator::Options options;
    options.allow_growth = false;
    options.allow_retry_on_failure = false;
    auto *const bfc = new Bfc;
    bfc->allocator =
        std::make_unique<tsl::BFCAllocator>(std::make_unique<Region>(), capacity, "peer", options);
    void *const first = bfc->allocator->AllocateRaw(PEER_ALIGN, PEER_ALIGN);
    bfc->base = reinterpret_cast<uint64_t>(first);
    bfc->allocator->DeallocateRaw(first);
    return bfc;
}

void destroy(void *self)
{
    delete static_cast<Bfc *>(self);
}

uint64_t alloc(void *self, uint64_t size)
{
    // A refusal is an answer; without this, each would be logged with a map of all memory.
    tsl::AllocationAttributes attributes;
    attributes.retry_on_failure = false;
    void *const block =
        static_cast<Bfc *>(self)->allocator->AllocateRaw(PEER_ALIGN, size, attributes);
    return block == nullptr ? PEER_REFUSED : reinterpret_cast<uint64_t>(block);
}

void release(void *self, uint64_t block)
{
    static_cast<Bfc *>(self)->allocator->DeallocateRaw(reinterpret_cast<void *>(block));
}

uint64_t offset(void *self, uint64_t block)
{
    return block - static_cast<Bfc *>(self)->base;
}

const peer_ops OPS = {create, destroy, alloc, release, offset, nullptr};

} // namespace

const peer_ops *peer_open(const char *, const char **)
{
    return &OPS;
}
