/* SPDX-License-Identifier: MIT */
/** UTF-8 of unknown origin: what is valid, and how wide it is on a terminal. */
#ifndef ALLOTI_CORE_UTF8_H
#define ALLOTI_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/**
 * Decode the code point at `text` [size, at least 1 byte] into *out.
 *
 * @return Its bytes, 1 to 4. For an invalid sequence 1, and *out is U+FFFD.
 */
size_t alloti_utf8_decode(const char *text, size_t size, uint32_t *out);

/** Columns a code point takes: 0 (combining, control), 1, or 2 (East Asian wide, emoji). */
unsigned alloti_utf8_width(uint32_t code);

/** Columns a text [size] takes. */
size_t alloti_utf8_columns(const char *text, size_t size);

/** Bytes of the longest head of a text [size] that takes at most `columns`. */
size_t alloti_utf8_cut(const char *text, size_t size, size_t columns);

/**
 * Make a text harmless to a terminal: control characters other than a line end and a tab, bytes
 * that are no UTF-8, separators of lines and marks that turn the direction of writing (a path could
 * look like another one) become '?'. Names in traces come from strangers.
 */
void alloti_utf8_disarm(char *text);

#endif /* ALLOTI_CORE_UTF8_H */
