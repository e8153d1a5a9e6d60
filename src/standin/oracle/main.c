/* SPDX-License-Identifier: MIT */
/*
 * allot-cudnn-oracle LIBRARY SECONDS: asks a real cuDNN for a dry run (cudnn_wire.h). Standard
 * input is the socket to the stand-in. It ends when the other side does, and when one answer takes
 * longer than SECONDS. It goes on in a child at once, so that the program that started it need not
 * wait.
 */
#include <stdlib.h>
#include <unistd.h>

#include "standin/cudnn_wire.h"
#include "standin/oracle/graph.h"

static bool greet(const char *path, cudnn_library *cudnn)
{
    char problem[WIRE_TEXT_MAX];
    alloti_bytes hello = {0};
    cudnn_library_load(path, cudnn, problem, sizeof problem);
    alloti_bytes_put_varint(&hello, problem[0] == '\0' ? 0 : 1);
    alloti_bytes_put_varint(&hello, cudnn->version);
    wire_put_text(&hello, problem);
    const bool is_ready = wire_send(STDIN_FILENO, &hello) && problem[0] == '\0';
    alloti_bytes_fini(&hello);
    return is_ready;
}

/** Answer one query; false when there are no more. */
static bool serve(const cudnn_library *cudnn, unsigned seconds)
{
    alloti_bytes query = {0};
    alloti_bytes answer = {0};
    bool is_served = wire_receive(STDIN_FILENO, -1, &query);
    if (is_served) {
        alloti_cursor cursor = {.data = query.data, .size = query.size};
        (void)alarm(seconds);
        oracle_answer(cudnn, &cursor, &answer);
        (void)alarm(0);
        is_served = wire_send(STDIN_FILENO, &answer);
    }
    alloti_bytes_fini(&query);
    alloti_bytes_fini(&answer);
    return is_served;
}

int main(int count, char **arguments)
{
    enum { DECIMAL = 10 };
    cudnn_library cudnn;
    if (count != 3) {
        return 2;
    }
    const pid_t child = fork();
    if (child != 0) {
        return child < 0 ? 1 : 0;
    }
    const unsigned seconds = (unsigned)strtoul(arguments[2], NULL, DECIMAL);
    (void)alarm(seconds);
    if (!greet(arguments[1], &cudnn)) {
        return 1;
    }
    (void)alarm(0);
    while (serve(&cudnn, seconds)) {
    }
    return 0;
}
