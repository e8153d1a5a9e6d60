/* SPDX-License-Identifier: MIT */
#include "standin/nccl_type.h"

#include <string.h>

enum { SUM = 0, PRODUCT = 1, MAX = 2, MIN = 3, AVERAGE = 4 };
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 };

static const struct {
    uint64_t size;
    const char *name;
} TYPES[] = {{1, "int8"},    {1, "uint8"},    {4, "int32"},      {4, "uint32"},
             {8, "int64"},   {8, "uint64"},   {2, "float16"},    {4, "float32"},
             {8, "float64"}, {2, "bfloat16"}, {1, "float8e4m3"}, {1, "float8e5m2"}};

static const char *const OPERATIONS[] = {"sum", "product", "max", "min", "average"};

uint64_t nccl_type_size(uint32_t type)
{
    return type < sizeof TYPES / sizeof TYPES[0] ? TYPES[type].size : 0;
}

const char *nccl_type_name(uint32_t type)
{
    return type < sizeof TYPES / sizeof TYPES[0] ? TYPES[type].name : "unknown";
}

const char *nccl_operation_name(uint32_t operation)
{
    return operation < sizeof OPERATIONS / sizeof OPERATIONS[0] ? OPERATIONS[operation]
                                                                : "own operation";
}

/* ---- one element at a time, as the widest type of its kind ---- */

static float bits_to_float(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t float_to_bits(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** IEEE 754 binary16 by its definition: sign, 5 bits of exponent (bias 15), 10 of fraction. */
static float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 31u;
    const uint32_t fraction = half & 1023u;
    if (exponent == 0) {
        const float magnitude = (float)fraction / 16777216.0f; /* 2^-24 */
        return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    return bits_to_float(sign | wide << 23 | fraction << 13);
}

/** Rounds towards zero; too large becomes infinite, too small zero. */
static uint16_t float_to_half(float value)
{
    const uint32_t bits = float_to_bits(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t exponent = bits >> 23 & 255u;
    if (exponent < 113) {
        return (uint16_t)sign;
    }
    if (exponent > 142) {
        return (uint16_t)(sign | 0x7c00u | (exponent == 255 && (bits & 0x7fffffu) != 0 ? 1u : 0u));
    }
    return (uint16_t)(sign | (exponent - 112) << 10 | (bits >> 13 & 1023u));
}

static double get_real(uint32_t type, const unsigned char *at)
{
    double wide = 0;
    float narrow = 0;
    uint16_t half = 0;
    switch (type) {
    case FLOAT64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case FLOAT32:
        memcpy(&narrow, at, sizeof narrow);
        return (double)narrow;
    default:
        memcpy(&half, at, sizeof half);
        return (double)(type == FLOAT16 ? half_to_float(half)
                                        : bits_to_float((uint32_t)half << 16));
    }
}

static void put_real(uint32_t type, double value, unsigned char *at)
{
    const float narrow = (float)value;
    uint16_t half = 0;
    switch (type) {
    case FLOAT64:
        memcpy(at, &value, sizeof value);
        break;
    case FLOAT32:
        memcpy(at, &narrow, sizeof narrow);
        break;
    default:
        half = type == FLOAT16 ? float_to_half(narrow) : (uint16_t)(float_to_bits(narrow) >> 16);
        memcpy(at, &half, sizeof half);
        break;
    }
}

static double join_real(uint32_t operation, double a, double b)
{
    switch (operation) {
    case PRODUCT:
        return a * b;
    case MAX:
        return a > b ? a : b;
    case MIN:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

static bool is_signed(uint32_t type)
{
    return type == INT8 || type == INT32 || type == INT64;
}

static uint64_t get_integer(uint32_t type, const unsigned char *at)
{
    uint64_t value = 0;
    const uint64_t size = nccl_type_size(type);
    memcpy(&value, at, (size_t)size);
    const uint64_t top = UINT64_C(1) << (8 * size - 1);
    return is_signed(type) && size < sizeof value && (value & top) != 0 ? value - 2 * top : value;
}

static bool is_less(uint32_t type, uint64_t a, uint64_t b)
{
    /* With the top bit turned, the order of two's complement is that of unsigned numbers. */
    const uint64_t turn = is_signed(type) ? UINT64_C(1) << 63 : 0;
    return (a ^ turn) < (b ^ turn);
}

static uint64_t join_integer(uint32_t type, uint32_t operation, uint64_t a, uint64_t b)
{
    switch (operation) {
    case PRODUCT:
        return a * b;
    case MAX:
        return is_less(type, a, b) ? b : a;
    case MIN:
        return is_less(type, a, b) ? a : b;
    default:
        return a + b;
    }
}

static uint64_t average_integer(uint32_t type, uint64_t sum, unsigned ranks)
{
    const bool is_negative = is_signed(type) && sum >> 63 != 0;
    return is_negative ? 0 - (0 - sum) / ranks : sum / ranks;
}

static void reduce_real(uint32_t type, uint32_t operation, unsigned char *const *inputs,
                        unsigned ranks, uint64_t at, unsigned char *out)
{
    double value = inputs[0] == NULL ? 0 : get_real(type, inputs[0] + at);
    for (unsigned i = 1; i < ranks; i++) {
        const double next = inputs[i] == NULL ? 0 : get_real(type, inputs[i] + at);
        value = join_real(operation, value, next);
    }
    put_real(type, operation == AVERAGE ? value / ranks : value, out + at);
}

static void reduce_integer(uint32_t type, uint32_t operation, unsigned char *const *inputs,
                           unsigned ranks, uint64_t at, unsigned char *out)
{
    uint64_t value = inputs[0] == NULL ? 0 : get_integer(type, inputs[0] + at);
    for (unsigned i = 1; i < ranks; i++) {
        const uint64_t next = inputs[i] == NULL ? 0 : get_integer(type, inputs[i] + at);
        value = join_integer(type, operation, value, next);
    }
    value = operation == AVERAGE ? average_integer(type, value, ranks) : value;
    memcpy(out + at, &value, (size_t)nccl_type_size(type));
}

void nccl_reduce(uint32_t type, uint32_t operation, unsigned char *const *inputs, unsigned ranks,
                 uint64_t count, unsigned char *out)
{
    const uint64_t size = nccl_type_size(type);
    if (type > BFLOAT16) {
        memset(out, 0, (size_t)(count * size));
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (type >= FLOAT16) {
            reduce_real(type, operation, inputs, ranks, i * size, out);
        } else {
            reduce_integer(type, operation, inputs, ranks, i * size, out);
        }
    }
}
