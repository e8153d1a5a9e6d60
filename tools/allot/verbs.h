/* SPDX-License-Identifier: MIT */
/** Every verb, one file each. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli.h"

#endif /* CLI_VERBS_H */
