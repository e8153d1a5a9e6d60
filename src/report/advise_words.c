/* SPDX-License-Identifier: MIT */
#include "report/advise_words.h"

#include <stdio.h>
#include <string.h>

const char *alloti_setting_text(const char *setting)
{
    return setting[0] == '\0' ? "(defaults)" : setting;
}

const char *alloti_setting_assign(const char *setting, char *buffer)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-.,:/+=@%";
    if (setting[0] == '\0') {
        snprintf(buffer, ALLOTI_ASSIGNMENT_MAX, "unset PYTORCH_CUDA_ALLOC_CONF");
        return buffer;
    }
    const char *const quote = setting[strspn(setting, PLAIN)] == '\0' ? "" : "'";
    snprintf(buffer, ALLOTI_ASSIGNMENT_MAX, "PYTORCH_CUDA_ALLOC_CONF=%s%s%s", quote, setting,
             quote);
    return buffer;
}

bool alloti_advice_shows(const allot_advice *advice, uint32_t index, uint32_t top)
{
    allot_advice_summary summary = {0};
    allot_advice_row row = {0};
    allot_advice_get_summary(advice, &summary);
    allot_advice_get_row(advice, index, &row);
    return index <= top || row.is_tried || index == summary.recommended_row;
}

alloti_outcome_text alloti_advice_outcome(const allot_advice_row *row)
{
    alloti_outcome_text out = {.text = "finishes"};
    if (!row->finishes) {
        snprintf(out.text, sizeof out.text, "OOM %llu", (unsigned long long)row->stop_event);
    }
    return out;
}

alloti_footnote alloti_advice_columns(const allot_advice_summary *summary)
{
    alloti_footnote out = {.text = ""};
    snprintf(out.text, sizeof out.text,
             "OOM: the event at which memory runs out; reserved: at the peak; saving: of %s, "
             "against the present setting (- is more); "
             "needs: smallest limit at which it runs; calls: to the driver; retries: everything "
             "cached was given back; time: what calls and retries cost, by a model%s",
             summary->is_by_need ? "needs" : "reserved",
             summary->is_complete
                 ? ""
                 : " (both unknown for others: the recording begins in the middle)");
    return out;
}

alloti_footnote alloti_advice_order(const allot_advice_summary *summary)
{
    alloti_footnote out = {.text = ""};
    snprintf(
        out.text, sizeof out.text,
        "order: finishes, has room, is not slower; then %s in steps of 1 %%, one more for each "
        "change",
        summary->is_by_need ? "needs" : "reserved");
    return out;
}
