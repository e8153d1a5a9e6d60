/* SPDX-License-Identifier: MIT */
/** What advice looks like in every form: settings, the line to paste, which rows are shown. */
#ifndef ALLOTI_REPORT_ADVISE_WORDS_H
#define ALLOTI_REPORT_ADVISE_WORDS_H

#include <allot/advise.h>
#include <allot/torchsim.h>

/** "(defaults)" for none. */
const char *alloti_setting_text(const char *setting);

/** Room for alloti_setting_assign(). */
#define ALLOTI_ASSIGNMENT_MAX (ALLOT_TORCH_CONF_TEXT_MAX + 32)

/**
 * "PYTORCH_CUDA_ALLOC_CONF=..." as a shell takes it: quoted if a character of it means something
 * there (settings hold no quotes). "unset PYTORCH_CUDA_ALLOC_CONF" for the defaults.
 *
 * @param[out] buffer  [ALLOTI_ASSIGNMENT_MAX]; returned.
 */
const char *alloti_setting_assign(const char *setting, char *buffer);

/** Whether a row is shown: the present one, the first `top`, the recommended one, all tried. */
bool alloti_advice_shows(const allot_advice *advice, uint32_t index, uint32_t top);

/** How a row ends: "finishes", "OOM 27107". */
typedef struct alloti_outcome_text {
    char text[32];
} alloti_outcome_text;
alloti_outcome_text alloti_advice_outcome(const allot_advice_row *row);

/** Footnotes of the table: what the columns are, and the order of the rows. */
typedef struct alloti_footnote {
    char text[400];
} alloti_footnote;
alloti_footnote alloti_advice_columns(const allot_advice_summary *summary);
alloti_footnote alloti_advice_order(const allot_advice_summary *summary);

/** What heads and explains the strategies of allot's own. */
#define ALLOTI_STRATEGIES_TITLE "What allot's own strategies would reserve"
#define ALLOTI_STRATEGIES_REMARK                                                                   \
    "no setting of PyTorch gives these: they need an allocator such as that of allot/heap.h; vm: " \
    "memory is mapped in granules of 2 MiB; segments: blocks lie in segments of 64 MiB and more; " \
    "free memory serves all streams and pools"

#endif /* ALLOTI_REPORT_ADVISE_WORDS_H */
