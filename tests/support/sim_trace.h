/* SPDX-License-Identifier: MIT */
/**
 * Recordings of made-up programs: what PyTorch would have written, with the model of its allocator
 * in its place. Each allocation has a stack of one frame, "program.py" and a line.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <allot/torchsim.h>
#include <allot/trace.h>

typedef struct sim_trace sim_trace;

/** Begin to record; `settings` as in PYTORCH_CUDA_ALLOC_CONF; limit 0 for none. */
sim_trace *sim_trace_begin(const char *settings, uint64_t limit);

/** Allocate at a line of the program; ALLOT_NONE if that runs out of memory (recorded as such). */
uint32_t sim_trace_alloc(sim_trace *sim, uint64_t size, uint32_t line);
void sim_trace_free(sim_trace *sim, uint32_t block);
void sim_trace_empty_cache(sim_trace *sim);
/** Free a block that another stream uses until the allocator has to wait for it. */
void sim_trace_free_shared(sim_trace *sim, uint32_t block);

/** End: the trace with the state as it stands, to be destroyed by the caller. */
allot_trace *sim_trace_end(sim_trace *sim);

#endif /* SIM_TRACE_H */
