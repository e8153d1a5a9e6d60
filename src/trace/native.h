/* SPDX-License-Identifier: MIT */
/**
 * The layout of allot's own format (".allot"), shared by its writer and its reader. docs/formats.md
 * describes it in full.
 *
 *   file:    magic [8], version le32, 0 le32, section...
 *   section: tag [4], 0 le32, raw size le64, packed size le64, checksum le64, packed bytes
 *
 * Packed bytes are one zstd frame. The checksum is XXH3 (64 bits) of the packed bytes with the seed
 * alloti_native_seed(). The sections stand in the order of ALLOTI_NATIVE_SECTIONS, EVENTS once per
 * device. Numbers inside are varints (core/bytes.h); an index that may be missing is stored plus
 * one, 0 for ALLOT_NONE; "delta" is the zigzag difference from the row before.
 */
#ifndef ALLOTI_TRACE_NATIVE_H
#define ALLOTI_TRACE_NATIVE_H

#include <stdint.h>
#include <string.h>

enum { ALLOTI_NATIVE_MAGIC_SIZE = 8, ALLOTI_NATIVE_VERSION = 1 };
enum {
    ALLOTI_NATIVE_HEADER_SIZE = 16,
    ALLOTI_NATIVE_SECTION_SIZE = 32,
    ALLOTI_NATIVE_TAG_SIZE = 4
};

/** The first byte is no text, the line ends show a transfer as text. */
#define ALLOTI_NATIVE_MAGIC                                                                        \
    "\x89"                                                                                         \
    "ALLOT\r\n"

/** X(NAME, tag) */
#define ALLOTI_NATIVE_SECTIONS(X)                                                                  \
    X(META, "META")                                                                                \
    X(STRINGS, "STRS")                                                                             \
    X(FX, "FRFX")                                                                                  \
    X(FRAMES, "FRAM")                                                                              \
    X(STACKS, "STCK")                                                                              \
    X(STREAMS, "STRM")                                                                             \
    X(POOLS, "POOL")                                                                               \
    X(EVENTS, "EVNT")                                                                              \
    X(SEGMENTS, "SEGM")                                                                            \
    X(ANNOTATIONS, "ANNO")                                                                         \
    X(SETTINGS, "SETT")                                                                            \
    X(END, "DONE")

typedef enum alloti_native_section {
#define ALLOTI_NATIVE_ENUM(name, tag) ALLOTI_NATIVE_##name,
    ALLOTI_NATIVE_SECTIONS(ALLOTI_NATIVE_ENUM)
#undef ALLOTI_NATIVE_ENUM
} alloti_native_section;

static inline const char *alloti_native_tag(alloti_native_section section)
{
    static const char *const TAGS[] = {
#define ALLOTI_NATIVE_TAG(name, tag) tag,
        ALLOTI_NATIVE_SECTIONS(ALLOTI_NATIVE_TAG)
#undef ALLOTI_NATIVE_TAG
    };
    return TAGS[section];
}

/** Columns of an EVENTS section, in order; each is its size in bytes (varint) and its bytes. */
typedef enum alloti_native_column {
    ALLOTI_COLUMN_KIND,            /**< A byte each. */
    ALLOTI_COLUMN_ADDR,            /**< Delta. */
    ALLOTI_COLUMN_SIZE,            /**< Number. */
    ALLOTI_COLUMN_TIME,            /**< Delta. */
    ALLOTI_COLUMN_STREAM,          /**< Index. */
    ALLOTI_COLUMN_POOL,            /**< Index plus one. */
    ALLOTI_COLUMN_STACK,           /**< Index plus one. */
    ALLOTI_COLUMN_CATEGORY,        /**< A byte each; this and the following may be missing. */
    ALLOTI_COLUMN_CONTEXT,         /**< Index plus one. */
    ALLOTI_COLUMN_METADATA,        /**< Index plus one. */
    ALLOTI_COLUMN_TOTAL_ALLOCATED, /**< Delta. */
    ALLOTI_COLUMN_TOTAL_RESERVED,  /**< Delta. */
    ALLOTI_COLUMN_COUNT,
} alloti_native_column;

/** The checksum covers the section's header through its seed. */
static inline uint64_t alloti_native_seed(const char *tag, uint64_t raw_size)
{
    uint64_t seed = raw_size;
    for (unsigned i = 0; i < ALLOTI_NATIVE_TAG_SIZE; i++) {
        seed ^= (uint64_t)(uint8_t)tag[i] << (32 + 8 * i);
    }
    return seed;
}

#endif /* ALLOTI_TRACE_NATIVE_H */
