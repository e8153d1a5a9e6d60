/* SPDX-License-Identifier: MIT */
#include "standin/nccl_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin/nccl_segment.h"
#include "standin/state.h"

/** What an id of ours begins with; the path of the meeting place follows. */
static const char ID_MARK[] = "allot:";
enum { ID_MARK_SIZE = sizeof ID_MARK - 1 };

/** Where ranks meet: beside the report, which all processes of a run share. */
static const char *meeting_folder(char *buffer, size_t size)
{
    const char *const report = standin_settings()->report;
    const char *const slash = strrchr(report, '/');
    const char *const told = getenv("TMPDIR");
    /* The whole path must fit into the id. */
    const size_t room = sizeof(cuda_unique_id) - sizeof ID_MARK - sizeof "/allot-nccl-XXXXXX";
    if (slash != NULL && (size_t)(slash - report) < room) {
        snprintf(buffer, size, "%.*s", (int)(slash - report), report);
        return buffer;
    }
    return told != NULL && told[0] == '/' && strlen(told) < room ? told : "/tmp";
}

/* Meeting places that nobody came to are removed when the process ends that made them. */
enum { INVITATIONS_MAX = 256 };
static char invitations[INVITATIONS_MAX][sizeof(cuda_unique_id)];
static unsigned invitation_count;
static pid_t inviter;
static pthread_mutex_t invitation_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the three above */

static void withdraw(void)
{
    for (unsigned i = 0; i < INVITATIONS_MAX && i < invitation_count && inviter == getpid(); i++) {
        (void)unlink(invitations[i]);
    }
}

static void remember_invitation(const char *path)
{
    pthread_mutex_lock(&invitation_lock);
    if (inviter != getpid()) {
        inviter = getpid();
        invitation_count = 0;
        (void)atexit(withdraw);
    }
    /* In place of the oldest, which has long been used. */
    snprintf(invitations[invitation_count++ % INVITATIONS_MAX], sizeof invitations[0], "%s", path);
    pthread_mutex_unlock(&invitation_lock);
}

allot_status nccl_id_make(cuda_unique_id *id)
{
    char folder[STANDIN_PATH_MAX];
    memset(id, 0, sizeof *id);
    memcpy(id->bytes, ID_MARK, ID_MARK_SIZE);
    if (standin_settings()->is_alone) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        segment_invite(meeting_folder(folder, sizeof folder), id->bytes + ID_MARK_SIZE,
                       sizeof id->bytes - ID_MARK_SIZE);
    if (status == ALLOT_STATUS_OK) {
        remember_invitation(id->bytes + ID_MARK_SIZE);
    }
    return status;
}

bool nccl_id_path(const cuda_unique_id *id, char *path)
{
    if (memcmp(id->bytes, ID_MARK, ID_MARK_SIZE) != 0) {
        return false;
    }
    snprintf(path, sizeof id->bytes, "%.*s", (int)(sizeof id->bytes - ID_MARK_SIZE),
             id->bytes + ID_MARK_SIZE);
    return true;
}
