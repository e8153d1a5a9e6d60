/* SPDX-License-Identifier: MIT */
#include <allot/gpu.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "standin/gpu_table.h"

static const gpu_architecture *architecture_of(const gpu_card *card)
{
    for (size_t i = 0; i < ALLOTI_GPU_ARCHITECTURE_COUNT; i++) {
        if (ALLOTI_GPU_ARCHITECTURES[i].major == card->major &&
            ALLOTI_GPU_ARCHITECTURES[i].minor == card->minor) {
            return &ALLOTI_GPU_ARCHITECTURES[i];
        }
    }
    return NULL;
}

static void set_source(allot_gpu *gpu, allot_gpu_field field, allot_gpu_source source,
                       const char *reference)
{
    gpu->source[field] = (uint8_t)source;
    snprintf(gpu->reference[field], sizeof gpu->reference[field], "%s", reference);
}

static void set_sources(const gpu_card *card, const gpu_architecture *architecture, allot_gpu *gpu)
{
    static const allot_gpu_field sheet[] = {
        ALLOT_GPU_FIELD_compute_major,  ALLOT_GPU_FIELD_compute_minor,
        ALLOT_GPU_FIELD_sm_count,       ALLOT_GPU_FIELD_l2_size,
        ALLOT_GPU_FIELD_clock_khz,      ALLOT_GPU_FIELD_memory_clock_khz,
        ALLOT_GPU_FIELD_memory_bus_bits};
    static const allot_gpu_field unknown[] = {ALLOT_GPU_FIELD_l2_persisting_size,
                                              ALLOT_GPU_FIELD_copy_engine_count};
    const gpu_context *const with_12 = &architecture->context_12;
    const gpu_context *const with_13 = &architecture->context_13;
    for (unsigned i = 0; i < ALLOT_GPU_FIELD_COUNT; i++) {
        set_source(gpu, (allot_gpu_field)i, ALLOT_GPU_SOURCE_GUIDE, ALLOTI_GPU_GUIDE);
    }
    for (size_t i = 0; i < sizeof sheet / sizeof sheet[0]; i++) {
        set_source(gpu, sheet[i], ALLOT_GPU_SOURCE_SHEET, architecture->paper);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        set_source(gpu, unknown[i], ALLOT_GPU_SOURCE_UNKNOWN, "");
    }
    set_source(gpu, ALLOT_GPU_FIELD_memory_total, card->memory_source, card->memory_reference);
    set_source(gpu, ALLOT_GPU_FIELD_memory_context_12, with_12->source, with_12->reference);
    set_source(gpu, ALLOT_GPU_FIELD_memory_context, with_13->source, with_13->reference);
}

/** A profile from a card and its architecture. */
static void make(const gpu_card *card, allot_gpu *out)
{
    const gpu_architecture *const architecture = architecture_of(card);
    enum { KIB = 1024, MIB = 1024 * 1024, REGISTERS = 65536, SHARED = 49152, KHZ = 1000 };
    *out = (allot_gpu){.struct_size = sizeof *out,
                       .memory_total = card->memory,
                       .memory_context = (uint64_t)architecture->context_13.mib * MIB,
                       .memory_context_12 = (uint64_t)architecture->context_12.mib * MIB,
                       .compute_major = card->major,
                       .compute_minor = card->minor,
                       .sm_count = card->sm_count,
                       .sm_threads = architecture->threads,
                       .sm_blocks = architecture->blocks,
                       .sm_registers = REGISTERS,
                       .sm_shared_size = (uint64_t)architecture->shared_kib * KIB,
                       .block_shared_size = SHARED,
                       .block_shared_optin_size = (uint64_t)architecture->optin_kib * KIB,
                       .block_shared_reserved_size = architecture->reserved,
                       .l2_size = (uint64_t)card->l2_kib * KIB,
                       .l2_persisting_size = (uint64_t)card->persisting_kib * KIB,
                       .clock_khz = (uint64_t)card->clock_mhz * KHZ,
                       .memory_clock_khz = (uint64_t)card->memory_clock_mhz * KHZ,
                       .memory_bus_bits = card->bus_bits,
                       .copy_engine_count = card->copy_engines};
    snprintf(out->id, sizeof out->id, "%s", card->id);
    snprintf(out->name, sizeof out->name, "%s", card->name);
    set_sources(card, architecture, out);
}

size_t allot_gpu_count(void)
{
    return ALLOTI_GPU_CARD_COUNT;
}

allot_status allot_gpu_at(size_t index, allot_gpu *out)
{
    if (index >= ALLOTI_GPU_CARD_COUNT) {
        return alloti_fail(ALLOT_STATUS_INVALID, "GPU profile %zu of %zu", index,
                           ALLOTI_GPU_CARD_COUNT);
    }
    make(&ALLOTI_GPU_CARDS[index], out);
    return ALLOT_STATUS_OK;
}

/** Letters and digits in small letters: "RTX 4090" and "rtx-4090" are the same. */
static void simplify(const char *text, char *out)
{
    size_t length = 0;
    for (const char *at = text; *at != '\0' && length + 1 < ALLOT_GPU_NAME_MAX; at++) {
        if (isalnum((unsigned char)*at) != 0) {
            out[length++] = (char)tolower((unsigned char)*at);
        }
    }
    out[length] = '\0';
}

static allot_status not_found(const char *id, const char *simple)
{
    char similar[256] = "";
    for (size_t i = 0; i < ALLOTI_GPU_CARD_COUNT; i++) {
        char own[ALLOT_GPU_NAME_MAX];
        simplify(ALLOTI_GPU_CARDS[i].id, own);
        if (strstr(own, simple) != NULL || strstr(simple, own) != NULL) {
            const size_t used = strlen(similar);
            snprintf(similar + used, sizeof similar - used, "%s%s", used == 0 ? "" : ", ",
                     ALLOTI_GPU_CARDS[i].id);
        }
    }
    return alloti_fail(ALLOT_STATUS_NOT_FOUND, "no GPU profile \"%s\"%s%s; allot gpu list has all",
                       id, similar[0] == '\0' ? "" : "; similar: ", similar);
}

allot_status allot_gpu_find(const char *id, allot_gpu *out)
{
    char wanted[ALLOT_GPU_NAME_MAX];
    simplify(id, wanted);
    for (size_t i = 0; i < ALLOTI_GPU_CARD_COUNT; i++) {
        char own[ALLOT_GPU_NAME_MAX];
        char name[ALLOT_GPU_NAME_MAX];
        simplify(ALLOTI_GPU_CARDS[i].id, own);
        simplify(ALLOTI_GPU_CARDS[i].name, name);
        if (strcmp(own, wanted) == 0 || strcmp(name, wanted) == 0) {
            make(&ALLOTI_GPU_CARDS[i], out);
            return ALLOT_STATUS_OK;
        }
    }
    return not_found(id, wanted);
}

uint64_t allot_gpu_value(const allot_gpu *gpu, allot_gpu_field field)
{
    switch (field) {
#define VALUE(name, unit, text)                                                                    \
    case ALLOT_GPU_FIELD_##name:                                                                   \
        return gpu->name;
        ALLOT_GPU_FIELD_LIST(VALUE)
#undef VALUE
    case ALLOT_GPU_FIELD_COUNT:
        break;
    }
    return 0;
}

const char *allot_gpu_field_name(allot_gpu_field field)
{
    static const char *const names[] = {
#define NAME(name, unit, text) #name,
        ALLOT_GPU_FIELD_LIST(NAME)
#undef NAME
    };
    return field < ALLOT_GPU_FIELD_COUNT ? names[field] : "";
}

const char *allot_gpu_field_unit(allot_gpu_field field)
{
    static const char *const units[] = {
#define UNIT(name, unit, text) unit,
        ALLOT_GPU_FIELD_LIST(UNIT)
#undef UNIT
    };
    return field < ALLOT_GPU_FIELD_COUNT ? units[field] : "";
}

const char *allot_gpu_field_text(allot_gpu_field field)
{
    static const char *const texts[] = {
#define TEXT(name, unit, text) text,
        ALLOT_GPU_FIELD_LIST(TEXT)
#undef TEXT
    };
    return field < ALLOT_GPU_FIELD_COUNT ? texts[field] : "";
}

const char *allot_gpu_source_name(allot_gpu_source source)
{
    static const char *const names[] = {
#define NAME(code, name, text) name,
        ALLOT_GPU_SOURCE_LIST(NAME)
#undef NAME
    };
    return source < ALLOT_GPU_SOURCE_COUNT ? names[source] : "";
}

const char *allot_gpu_source_text(allot_gpu_source source)
{
    static const char *const texts[] = {
#define TEXT(code, name, text) text,
        ALLOT_GPU_SOURCE_LIST(TEXT)
#undef TEXT
    };
    return source < ALLOT_GPU_SOURCE_COUNT ? texts[source] : "";
}

uint64_t allot_gpu_context(const allot_gpu *gpu, unsigned cuda_major)
{
    return cuda_major == 12 ? gpu->memory_context_12 : gpu->memory_context;
}
