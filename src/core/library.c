/* SPDX-License-Identifier: MIT */
#include "core/library.h"

#include <dlfcn.h>
#include <string.h>

void *alloti_library_open(const char *soname, const char **reason)
{
    void *const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && reason != NULL) {
        const char *const text = dlerror();
        *reason = text == NULL ? "" : text;
    }
    return library;
}

const char *alloti_library_find(void *library, const alloti_symbol *symbols, size_t count)
{
    const char *missing = NULL;
    for (size_t i = 0; i < count; i++) {
        void *const symbol = library == NULL ? NULL : dlsym(library, symbols[i].name);
        /* A function pointer takes the bits of an object pointer on every system with dlsym(). */
        memcpy(symbols[i].place, &symbol, sizeof symbol);
        if (symbol == NULL && symbols[i].is_required && missing == NULL) {
            missing = symbols[i].name;
        }
    }
    return missing;
}
