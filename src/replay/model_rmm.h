/* SPDX-License-Identifier: MIT */
/** The three resources that "rmm:..." names; model_rmm.c chooses between them. */
#ifndef ALLOTI_REPLAY_MODEL_RMM_H
#define ALLOTI_REPLAY_MODEL_RMM_H

#include "replay/model.h"

extern const alloti_model_ops alloti_model_rmm_arena;
extern const alloti_model_ops alloti_model_rmm_binning;
extern const alloti_model_ops alloti_model_rmm_pool;

#endif /* ALLOTI_REPLAY_MODEL_RMM_H */
