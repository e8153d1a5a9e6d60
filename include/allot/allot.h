/* SPDX-License-Identifier: MIT */
/** @file Everything that allot offers to a program. */
#ifndef ALLOT_H
#define ALLOT_H

#include <allot/advise.h>
#include <allot/base.h>
#include <allot/compact.h>
#include <allot/compactor.h>
#include <allot/compare.h>
#include <allot/device.h>
#include <allot/device_backend.h>
#include <allot/explain.h>
#include <allot/gpu.h>
#include <allot/heap.h>
#include <allot/history.h>
#include <allot/html.h>
#include <allot/replay.h>
#include <allot/report.h>
#include <allot/space.h>
#include <allot/torchsim.h>
#include <allot/trace.h>
#include <allot/workspace.h>

#endif /* ALLOT_H */
