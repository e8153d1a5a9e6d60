/* SPDX-License-Identifier: MIT */
/* Columns of LEB128 numbers. */
#include "report/html_pack.h"

#include <stdlib.h>

#include "core/array.h"

alloti_pack_column alloti_pack_begin(alloti_pack *pack, bool is_delta)
{
    return (alloti_pack_column){.pack = pack, .at = pack->size, .is_delta = is_delta};
}

/* (value - previous) as an unsigned number: 0, -1, 1, -2 ... become 0, 1, 2, 3 ... */
static uint64_t zigzag(uint64_t previous, uint64_t value)
{
    return value >= previous ? (value - previous) * 2 : (previous - value) * 2 - 1;
}

void alloti_pack_put(alloti_pack_column *column, uint64_t value)
{
    enum { NUMBER_BYTES = 10 };
    alloti_pack *const pack = column->pack;
    value = value > ALLOTI_PACK_MAX ? ALLOTI_PACK_MAX : value;
    uint64_t rest = column->is_delta ? zigzag(column->previous, value) : value;
    column->previous = value;
    column->count++;
    if (pack->status == ALLOT_STATUS_OK) {
        pack->status =
            alloti_array_reserve(&pack->bytes, &pack->capacity, pack->size + NUMBER_BYTES, 1);
    }
    if (pack->status != ALLOT_STATUS_OK) {
        return;
    }
    for (; rest > 127; rest >>= 7) {
        pack->bytes[pack->size++] = (uint8_t)(rest | 128);
    }
    pack->bytes[pack->size++] = (uint8_t)rest;
}

void alloti_pack_end(const alloti_pack_column *column, alloti_json *json, const char *key)
{
    alloti_json_object_begin(json, key);
    alloti_json_put_u64(json, "at", column->at);
    alloti_json_put_u64(json, "n", column->count);
    alloti_json_put_bool(json, "delta", column->is_delta);
    alloti_json_object_end(json);
}

void alloti_pack_array(alloti_pack *pack, alloti_json *json, const char *key, bool is_delta,
                       const uint64_t *values, uint64_t count)
{
    alloti_pack_column column = alloti_pack_begin(pack, is_delta);
    for (uint64_t i = 0; i < count; i++) {
        alloti_pack_put(&column, values[i]);
    }
    alloti_pack_end(&column, json, key);
}

void alloti_pack_fini(alloti_pack *pack)
{
    free(pack->bytes);
    *pack = (alloti_pack){0};
}
