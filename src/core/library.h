/* SPDX-License-Identifier: MIT */
/**
 * Functions of shared libraries that are looked for at run time: drivers, which are on some
 * machines only. Nothing of them is needed to build allot.
 */
#ifndef ALLOTI_CORE_LIBRARY_H
#define ALLOTI_CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/** A function to look for. */
typedef struct alloti_symbol {
    const char *name; /**< As the library exports it. */
    void *place;      /**< The function pointer to set; NULL is put there if it is missing. */
    bool is_required;
} alloti_symbol;

/**
 * Load a library by its SONAME; NULL if it cannot be. It stays loaded: drivers do not like to be
 * unloaded. *reason (may be NULL) is then what the loader says: valid until this thread's next use
 * of the loader.
 */
void *alloti_library_open(const char *soname, const char **reason);

/**
 * Find the functions in `library` (NULL: none is found). NULL if all the required ones are there,
 * else the name of the first that is not.
 */
const char *alloti_library_find(void *library, const alloti_symbol *symbols, size_t count);

#endif /* ALLOTI_CORE_LIBRARY_H */
