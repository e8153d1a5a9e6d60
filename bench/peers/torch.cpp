// SPDX-License-Identifier: MIT
// PyTorch's caching allocator on the stand-in for CUDA. Its limit is a fraction of the card.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include "peer.h"

namespace
{

namespace caching = c10::cuda::CUDACachingAllocator;

// Blocks that are kept are given back, so that the next allocator begins with nothing.
void destroy(void *)
{
    caching::emptyCache();
}

void *create(uint64_t capacity)
{
    size_t free = 0;
    size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess || total < capacity) {
        return nullptr;
    }
    caching::setMemoryFraction(static_cast<double>(capacity) / static_cast<double>(total), 0);
    caching::resetPeakStats(0);
    return caching::get();
}

uint64_t alloc(void *self, uint64_t size)
{
    try {
        return reinterpret_cast<uint64_t>(
            static_cast<caching::CUDAAllocator *>(self)->raw_alloc(size));
    } catch (const c10::OutOfMemoryError &) {
        return PEER_REFUSED;
    }
}

void release(void *self, uint64_t block)
{
    static_cast<caching::CUDAAllocator *>(self)->raw_delete(reinterpret_cast<void *>(block));
}

uint64_t offset(void *, uint64_t block)
{
    return block;
}

uint64_t reserved(void *)
{
    return static_cast<uint64_t>(caching::getDeviceStats(0).reserved_bytes[0].peak);
}

const peer_ops OPS = {create, destroy, alloc, release, offset, reserved};

} // namespace

const peer_ops *peer_open(const char *, const char **reason)
{
    try {
        caching::init(1);
    } catch (const std::exception &error) {
        static std::string text;
        text = error.what();
        *reason = text.c_str();
        return nullptr;
    }
    return &OPS;
}
