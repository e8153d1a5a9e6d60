/* SPDX-License-Identifier: MIT */
/* The findings for people. */
#include <inttypes.h>

#include "doctor.h"

static void print_size(const char *before, uint64_t size)
{
    char text[ALLOT_SIZE_TEXT_MAX];
    printf("%s%s", before, allot_size_format(size, text));
}

/** What a device can do beyond plain allocation, in one line. */
static void print_abilities(const allot_device_info *info)
{
    static const char *const NONE = "plain memory only";
    const char *before = "";
    const struct {
        bool is_there;
        const char *text;
    } abilities[] = {
        {info->granule != 0, "virtual memory"},
        {info->page != 0, "moves pages"},
        {info->has_async_alloc, "allocator that follows streams"},
        {info->has_batch_copy, "batches of copies"},
        {!info->has_bytes, "no bytes"},
    };
    printf("    can: ");
    for (size_t i = 0; i < sizeof abilities / sizeof abilities[0]; i++) {
        if (abilities[i].is_there) {
            printf("%s%s", before, abilities[i].text);
            before = ", ";
        }
    }
    printf("%s\n", before[0] == '\0' ? NONE : "");
}

static void print_device(const doctor_device *device)
{
    const allot_device_info *const info = &device->info;
    if (device->status != ALLOT_STATUS_OK) {
        printf("  %s: %s\n", doctor_device_text(device), device->reason);
        return;
    }
    printf("  %s: %s\n", doctor_device_text(device), info->name);
    print_size("    memory ", info->memory_total);
    print_size(", free ", device->size_free);
    print_size("; alignment ", info->align);
    if (info->granule != 0) {
        print_size(", granule ", info->granule);
    }
    if (info->page != 0) {
        print_size(", moves pages of ", info->page);
        print_size(" from ", info->page_move_min);
        printf(" on");
    }
    if (info->copy_bytes_per_s != 0) {
        print_size("; copies ", info->copy_bytes_per_s);
        printf("/s");
    }
    printf("\n");
    print_abilities(info);
}

static void print_backends(const doctor_findings *findings)
{
    printf("Backends\n");
    for (unsigned i = 0; i < ALLOT_BACKEND_COUNT; i++) {
        const doctor_backend *const backend = &findings->backends[i];
        printf("  %-10s %-4s %s\n", allot_backend_name((allot_backend)i),
               backend->status == ALLOT_STATUS_OK ? "yes" : "no", backend->found.reason);
    }
}

void doctor_print_text(const doctor_findings *findings)
{
    if (!findings->is_one_device) {
        print_backends(findings);
        printf("\nDevices\n");
    }
    for (size_t i = 0; i < findings->device_count; i++) {
        print_device(&findings->devices[i]);
    }
    if (findings->is_one_device) {
        return;
    }
    printf("\nKernel: %s\n", findings->kernel);
    for (size_t i = 0; i < findings->fact_count; i++) {
        const doctor_fact *const fact = &findings->facts[i];
        printf("  %-18s %-14s %s\n", fact->name, fact->value, fact->meaning);
    }
    printf("\nStand-in for CUDA: %s\n",
           findings->standin[0] != '\0' ? findings->standin
                                        : "not found; allot dryrun needs it (64-bit x86 Linux)");
}
