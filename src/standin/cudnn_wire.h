/* SPDX-License-Identifier: MIT */
/**
 * What the stand-in and the helper program with the real cuDNN say to each other, over a socket of
 * one machine. Each message is its size (32 bits, little-endian) and that many bytes; numbers are
 * varints, texts a length and bytes.
 *
 *   helper:   hello   status, version of cuDNN, text of what is wrong
 *   stand-in: query   device as JSON, mode, graph
 *   helper:   answer  status, count, and for each engine configuration: status, workspace, engine,
 *                     numerical notes, behaviour notes (each a count and numbers)
 *
 * A graph is a count of descriptors, each after those it holds; the last one is the graph. A
 * descriptor is its type, a count of attributes, and for each: name, type, count, values. Values
 * are bytes as cuDNN takes them, or positions of descriptors. Handles and pointers are left out.
 */
#ifndef ALLOTI_STANDIN_CUDNN_WIRE_H
#define ALLOTI_STANDIN_CUDNN_WIRE_H

#include "core/bytes.h"

enum {
    WIRE_SIZE_MAX = 16 << 20,
    WIRE_NOTES_MAX = 16,
    WIRE_CHOICES_MAX = 1024,
    WIRE_TEXT_MAX = 256
};

/** One engine configuration that cuDNN proposes. */
typedef struct cudnn_choice {
    int status;         /**< Not 0: a plan of it cannot be made. */
    uint64_t workspace; /**< Bytes. */
    uint64_t engine;
    uint32_t numerical_count;
    uint32_t behavior_count;
    int numerical[WIRE_NOTES_MAX];
    int behavior[WIRE_NOTES_MAX];
} cudnn_choice;

/** Send one message; false if the other side is gone. */
bool wire_send(int socket, const alloti_bytes *message);

/**
 * Receive one message into an empty buffer.
 *
 * @param[in] wait_ms  -1: for ever.
 * @return false if the other side is gone, is silent for that long, or talks nonsense.
 */
bool wire_receive(int socket, int wait_ms, alloti_bytes *message);

void wire_put_text(alloti_bytes *message, const char *text);

/** Cut at WIRE_TEXT_MAX. */
void wire_take_text(alloti_cursor *message, char *out);

void wire_put_choice(alloti_bytes *message, const cudnn_choice *choice);
void wire_take_choice(alloti_cursor *message, cudnn_choice *out);

#endif /* ALLOTI_STANDIN_CUDNN_WIRE_H */
