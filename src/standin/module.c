/* SPDX-License-Identifier: MIT */
#include "standin/module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"

/* What nvcc emits: the wrapper that is registered, the binary behind it, each entry of that. */
typedef struct fat_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *binary;
    void *unused;
} fat_wrapper;

typedef struct fat_header {
    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint64_t size; /**< Of all entries. */
} fat_header;

typedef struct fat_entry {
    uint16_t kind;
    uint16_t attributes;
    uint32_t header_size;
    uint64_t size;
    uint32_t size_compressed;
    uint32_t options;
    uint16_t version_minor;
    uint16_t version_major;
    uint32_t architecture; /**< 90 for sm_90 and compute_90. */
} fat_entry;

enum { WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, KIND_ELF = 2 };
static const uint32_t HEADER_MAGIC = 0xBA55ED50u;

typedef struct module {
    const fat_wrapper *wrapper;
    int architecture; /**< Found once; 0 before: most are never asked about. */
    bool is_searched;
} module;

typedef struct function_entry {
    const void *function; /**< NULL: free. */
    module *owner;
    const char *name;
} function_entry;

static struct {
    pthread_mutex_t lock;      /**< Guards all of it. */
    function_entry *functions; /**< Hash table, a power of two of places, linear probing. */
    uint64_t count;
    uint64_t places;
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

void **module_register(const void *wrapper)
{
    static void *nothing;
    module *const made = calloc(1, sizeof *made);
    if (made == NULL) {
        return &nothing; /* its kernels are then unknown, which is allowed */
    }
    made->wrapper = wrapper;
    return (void **)made;
}

static uint64_t place_of(const void *function, uint64_t places)
{
    return ((uint64_t)(uintptr_t)function * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (places - 1);
}

static function_entry *look_up(function_entry *table, uint64_t places, const void *function)
{
    uint64_t at = place_of(function, places);
    while (table[at].function != NULL && table[at].function != function) {
        at = (at + 1) & (places - 1);
    }
    return &table[at];
}

static bool grow(void)
{
    const uint64_t places = modules.places == 0 ? 1 << 14 : modules.places * 2;
    function_entry *const table = alloti_calloc_array(places, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < modules.places; i++) {
        if (modules.functions[i].function != NULL) {
            *look_up(table, places, modules.functions[i].function) = modules.functions[i];
        }
    }
    free(modules.functions);
    modules.functions = table;
    modules.places = places;
    return true;
}

void module_add_function(void **handle, const void *function, const char *name)
{
    pthread_mutex_lock(&modules.lock);
    if (modules.count * 2 < modules.places || grow()) {
        function_entry *const entry = look_up(modules.functions, modules.places, function);
        modules.count += entry->function == NULL ? 1 : 0;
        *entry = (function_entry){function, (module *)handle, name};
    }
    pthread_mutex_unlock(&modules.lock);
}

const char *module_function_name(const void *function)
{
    const char *name = NULL;
    pthread_mutex_lock(&modules.lock);
    if (function != NULL && modules.places != 0) {
        name = look_up(modules.functions, modules.places, function)->name;
    }
    pthread_mutex_unlock(&modules.lock);
    return name;
}

/** Whether code for architecture `have` runs on `want`, and how well: more is better, 0 not. */
static unsigned fitness(const fat_entry *entry, unsigned want)
{
    const unsigned have = entry->architecture;
    if (have > want) {
        return 0;
    }
    if (entry->kind == KIND_ELF) {
        return have / 10 == want / 10 ? 2000 + have : 0;
    }
    return entry->kind == KIND_PTX ? 1000 + have : 0;
}

int module_best_architecture(const void *binary, uint64_t size, unsigned major, unsigned minor)
{
    fat_header header;
    if (size < sizeof header) {
        return 0;
    }
    memcpy(&header, binary, sizeof header);
    if (header.magic != HEADER_MAGIC || header.header_size < sizeof header) {
        return 0;
    }
    const char *const bytes = binary;
    uint64_t at = header.header_size;
    const uint64_t end = header.size > size - at ? size : at + header.size;
    unsigned best = 0;
    int architecture = 0;
    while (at < end && end - at >= sizeof(fat_entry)) {
        fat_entry entry;
        memcpy(&entry, bytes + at, sizeof entry);
        if (entry.header_size < sizeof entry || entry.header_size > end - at ||
            entry.size > end - at - entry.header_size) {
            break;
        }
        const unsigned fit = fitness(&entry, major * 10 + minor);
        if (fit > best) {
            best = fit;
            architecture = (int)entry.architecture;
        }
        at += entry.header_size + entry.size;
    }
    return architecture;
}

static int search(module *owner, unsigned major, unsigned minor)
{
    if (!owner->is_searched) {
        owner->is_searched = true;
        const fat_wrapper *const wrapper = owner->wrapper;
        if (wrapper != NULL && wrapper->magic == WRAPPER_MAGIC) {
            /* The compiler's own data: its header says how long it is. */
            owner->architecture =
                module_best_architecture(wrapper->binary, UINT64_MAX / 2, major, minor);
        }
    }
    return owner->architecture;
}

int module_architecture(const void *function, unsigned major, unsigned minor)
{
    int found = -1;
    pthread_mutex_lock(&modules.lock);
    if (modules.places != 0) {
        const function_entry *const entry = look_up(modules.functions, modules.places, function);
        if (entry->function != NULL && entry->owner != NULL) {
            found = search(entry->owner, major, minor);
        }
    }
    pthread_mutex_unlock(&modules.lock);
    return found;
}
