/* SPDX-License-Identifier: MIT */
/**
 * Numbers out of text that need not end in a NUL. All of the text must be the number; nothing is
 * skipped, rounded up or taken modulo 2^64. `out` is untouched where the result is false.
 */
#ifndef ALLOTI_CORE_NUMBER_TEXT_H
#define ALLOTI_CORE_NUMBER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Decimal digits only. */
bool alloti_number_u64(const char *text, size_t length, uint64_t *out);

/** Hexadecimal digits in any case, "0x" before them or not. */
bool alloti_number_hex(const char *text, size_t length, uint64_t *out);

/** Decimal digits with a sign or without. */
bool alloti_number_i64(const char *text, size_t length, int64_t *out);

/**
 * A decimal number with sign, fraction and exponent, times 10^decimals, exactly; what lies below
 * one is cut. "1623143566756.125" with 3 decimals is 1623143566756125.
 */
bool alloti_number_fixed(const char *text, size_t length, unsigned decimals, int64_t *out);

#endif /* ALLOTI_CORE_NUMBER_TEXT_H */
