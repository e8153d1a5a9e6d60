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

/** What follows an entry's fields where there is more of the header. */
typedef struct fat_entry_more {
    uint64_t flags;
    uint64_t unused;
    uint64_t full_size; /**< Of the code when expanded. */
} fat_entry_more;

enum { WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, KIND_ELF = 2, MORE_OFFSET = 40 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
static const uint32_t HEADER_MAGIC = 0xBA55ED50u;

/** The code of a binary that a device would run. */
typedef struct fat_code {
    fat_entry entry;
    const char *header; /**< The entry's own, whole; NULL: there is none. */
} fat_code;

typedef struct module {
    const fat_wrapper *wrapper;
    fat_code code; /**< Found once: most are never asked about. */
    bool is_searched;
} module;

typedef struct function_entry {
    const void *function; /**< NULL: free. */
    module *owner;
    const char *name;     /**< Of the kernel, mangled. */
    cubin_kernel *kernel; /**< Read once; all 0: it could not be. */
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
        *entry = (function_entry){.function = function, .owner = (module *)handle, .name = name};
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

/** The code of a fat binary [size] that fits a device best. */
static fat_code find_code(const void *binary, uint64_t size, unsigned major, unsigned minor)
{
    fat_header header;
    fat_code code = {.header = NULL};
    if (size < sizeof header) {
        return code;
    }
    memcpy(&header, binary, sizeof header);
    if (header.magic != HEADER_MAGIC || header.header_size < sizeof header) {
        return code;
    }
    const char *const bytes = binary;
    uint64_t at = header.header_size;
    const uint64_t end = header.size > size - at ? size : at + header.size;
    unsigned best = 0;
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
            code = (fat_code){entry, bytes + at};
        }
        at += entry.header_size + entry.size;
    }
    return code;
}

static const fat_code *search(module *owner, unsigned major, unsigned minor)
{
    if (!owner->is_searched) {
        owner->is_searched = true;
        const fat_wrapper *const wrapper = owner->wrapper;
        if (wrapper != NULL && wrapper->magic == WRAPPER_MAGIC) {
            /* The compiler's own data: its header says how long it is. */
            owner->code = find_code(wrapper->binary, UINT64_MAX / 2, major, minor);
        }
    }
    return &owner->code;
}

/** The entry of a known function, else NULL; under the lock. */
static function_entry *find_function(const void *function)
{
    if (modules.places == 0) {
        return NULL;
    }
    function_entry *const entry = look_up(modules.functions, modules.places, function);
    return entry->function != NULL && entry->owner != NULL ? entry : NULL;
}

int module_architecture(const void *function, unsigned major, unsigned minor)
{
    int found = -1;
    pthread_mutex_lock(&modules.lock);
    const function_entry *const entry = find_function(function);
    if (entry != NULL) {
        const fat_code *const code = search(entry->owner, major, minor);
        found = code->header == NULL ? 0 : (int)code->entry.architecture;
    }
    pthread_mutex_unlock(&modules.lock);
    return found;
}

static bool read_kernel(const fat_code *code, const char *name, cubin_kernel *out)
{
    if (code->header == NULL || name == NULL || code->entry.kind != KIND_ELF) {
        return false;
    }
    const char *const bytes = code->header + code->entry.header_size;
    fat_entry_more more = {0};
    if (code->entry.header_size >= MORE_OFFSET + sizeof more) {
        memcpy(&more, code->header + MORE_OFFSET, sizeof more);
    }
    if ((more.flags & FLAG_ZSTD) != 0) {
        return cubin_read_compressed(bytes, code->entry.size_compressed, more.full_size, name, out);
    }
    return (more.flags & FLAG_LZ4) == 0 && cubin_read(bytes, code->entry.size, name, out);
}

bool module_kernel(const void *function, unsigned major, unsigned minor, cubin_kernel *out)
{
    *out = (cubin_kernel){0};
    pthread_mutex_lock(&modules.lock);
    function_entry *const entry = find_function(function);
    if (entry != NULL && entry->kernel == NULL) {
        entry->kernel = calloc(1, sizeof *entry->kernel);
        if (entry->kernel != NULL &&
            !read_kernel(search(entry->owner, major, minor), entry->name, entry->kernel)) {
            *entry->kernel = (cubin_kernel){0};
        }
    }
    if (entry != NULL && entry->kernel != NULL) {
        *out = *entry->kernel;
    }
    pthread_mutex_unlock(&modules.lock);
    return out->registers != 0;
}
