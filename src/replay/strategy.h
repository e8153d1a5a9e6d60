/* SPDX-License-Identifier: MIT */
/** The strategy that a model string begins with. */
#ifndef ALLOTI_REPLAY_STRATEGY_H
#define ALLOTI_REPLAY_STRATEGY_H

#include <allot/space.h>

#include "core/status.h"

/**
 * Read "first-fit:KEY=VALUE,..."; "" is first fit.
 *
 * @param[in]  model     "space", "heap": for the message.
 * @param[in]  argument  What followed the model's name and a colon.
 * @param[out] rest      What follows the strategy and a colon, in `argument`.
 * @return ALLOT_STATUS_INVALID for an unknown strategy.
 */
ALLOT_NODISCARD allot_status alloti_strategy_take(const char *model, const char *argument,
                                                  allot_space_strategy *strategy,
                                                  const char **rest);

#endif /* ALLOTI_REPLAY_STRATEGY_H */
