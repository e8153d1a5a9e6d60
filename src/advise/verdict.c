/* SPDX-License-Identifier: MIT */
/* Spellings of the outcomes of advice. */
#include <allot/advise.h>

const char *allot_advice_verdict_name(allot_advice_verdict verdict)
{
    switch (verdict) {
#define CASE(name, value, spelling)                                                                \
    case ALLOT_ADVICE_VERDICT_##name:                                                              \
        return spelling;
        ALLOT_ADVICE_VERDICT_LIST(CASE)
#undef CASE
    }
    return "unknown";
}

const char *allot_limit_source_name(allot_limit_source source)
{
    switch (source) {
#define CASE(name, value, spelling)                                                                \
    case ALLOT_LIMIT_SOURCE_##name:                                                                \
        return spelling;
        ALLOT_LIMIT_SOURCE_LIST(CASE)
#undef CASE
    }
    return "unknown";
}
