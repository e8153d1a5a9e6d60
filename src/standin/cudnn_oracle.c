/* SPDX-License-Identifier: MIT */
#include "standin/cudnn_oracle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/cudnn_helper.h"
#include "standin/cudnn_query.h"
#include "standin/state.h"

/** A question that was asked. */
typedef struct memory_entry {
    struct memory_entry *next; /**< In its bucket. */
    uint64_t hash;
    alloti_bytes query;
    cudnn_answer *answer; /**< NULL: cuDNN did not answer. */
} memory_entry;

enum { BUCKETS = 1 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static memory_entry *buckets[BUCKETS];
static cudnn_helper helper = {.socket = -1};
static uint64_t queries;
static uint64_t repeated;

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_of(const alloti_bytes *bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < bytes->size; i++) {
        hash = (hash ^ bytes->data[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static memory_entry *find(uint64_t hash, const alloti_bytes *query)
{
    memory_entry *entry = buckets[hash % BUCKETS];
    while (entry != NULL && (entry->hash != hash || entry->query.size != query->size ||
                             memcmp(entry->query.data, query->data, query->size) != 0)) {
        entry = entry->next;
    }
    return entry;
}

/** Read an answer; NULL if it makes no sense or there is no host memory. */
static cudnn_answer *read_answer(const alloti_bytes *message)
{
    alloti_cursor cursor = {.data = message->data, .size = message->size};
    const int status = (int)alloti_cursor_varint(&cursor);
    const uint64_t count = alloti_cursor_varint(&cursor);
    cudnn_answer *const answer = calloc(1, sizeof *answer);
    cudnn_choice *const choices =
        count > WIRE_CHOICES_MAX ? NULL : alloti_calloc_array(count + 1, sizeof *choices);
    if (answer == NULL || choices == NULL) {
        free(answer);
        free(choices);
        return NULL;
    }
    *answer = (cudnn_answer){.status = status, .count = (uint32_t)count, .choices = choices};
    for (uint32_t i = 0; i < answer->count; i++) {
        wire_take_choice(&cursor, &choices[i]);
        if (choices[i].status == CUDNN_OK && choices[i].workspace > answer->largest) {
            answer->largest = choices[i].workspace;
        }
    }
    if (cursor.has_failed) {
        free(choices);
        free(answer);
        return NULL;
    }
    return answer;
}

/** Whether a status of cuDNN is about the graph, not about cuDNN's own condition. */
static bool is_about_graph(int status)
{
    enum { CATEGORY = 1000 };
    return status == CUDNN_OK || status / CATEGORY == CUDNN_NOT_SUPPORTED / CATEGORY;
}

static void drop(cudnn_answer *answer)
{
    snprintf(helper.problem, sizeof helper.problem, "it answered a question with status %d",
             answer == NULL ? -1 : answer->status);
    free(answer == NULL ? NULL : answer->choices);
    free(answer);
}

static cudnn_answer *ask(const standin_config *config, const alloti_bytes *query)
{
    alloti_bytes message = {0};
    cudnn_answer *answer = NULL;
    queries++;
    if (cudnn_helper_ask(&helper, config, query, &message)) {
        answer = read_answer(&message);
        if (answer == NULL || !is_about_graph(answer->status)) {
            drop(answer);
            answer = NULL;
        }
    }
    alloti_bytes_fini(&message);
    return answer;
}

/** Remember an answer; takes the query. Without host memory it is asked again next time. */
static void remember(uint64_t hash, alloti_bytes *query, cudnn_answer *answer)
{
    memory_entry *const entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return;
    }
    *entry = (memory_entry){
        .next = buckets[hash % BUCKETS], .hash = hash, .query = *query, .answer = answer};
    *query = (alloti_bytes){0};
    buckets[hash % BUCKETS] = entry;
}

cudnn_answer *cudnn_oracle_ask(const cudnn_descriptor *graph, int mode)
{
    const standin_config *const config = standin_settings();
    alloti_bytes query = {0};
    if (config->oracle[0] == '\0') {
        return NULL;
    }
    cudnn_query_write(&config->gpu, graph, mode, &query);
    cudnn_answer *answer = NULL;
    if (query.status == ALLOT_STATUS_OK) {
        const uint64_t hash = hash_of(&query);
        pthread_mutex_lock(&lock);
        const memory_entry *const known = find(hash, &query);
        if (known != NULL) {
            answer = known->answer;
            repeated++;
        } else {
            answer = ask(config, &query);
            remember(hash, &query, answer);
        }
        pthread_mutex_unlock(&lock);
    }
    alloti_bytes_fini(&query);
    return answer;
}

bool cudnn_oracle_describe(cudnn_oracle_state *out)
{
    pthread_mutex_lock(&lock);
    *out = (cudnn_oracle_state){.queries = queries,
                                .repeated = repeated,
                                .version = helper.version,
                                .problem = helper.problem};
    pthread_mutex_unlock(&lock);
    return standin_settings()->oracle[0] != '\0';
}
