/* SPDX-License-Identifier: MIT */
#include "standin/cudnn_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static bool send_all(int socket, const uint8_t *data, uint64_t size)
{
    while (size != 0) {
        const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        data += sent;
        size -= (uint64_t)sent;
    }
    return true;
}

bool wire_send(int socket, const alloti_bytes *message)
{
    alloti_bytes size = {0};
    alloti_bytes_put_le32(&size, (uint32_t)message->size);
    const bool is_sent = message->status == ALLOT_STATUS_OK && message->size <= WIRE_SIZE_MAX &&
                         size.status == ALLOT_STATUS_OK && send_all(socket, size.data, size.size) &&
                         send_all(socket, message->data, message->size);
    alloti_bytes_fini(&size);
    return is_sent;
}

static bool receive_all(int socket, int wait_ms, alloti_bytes *out, uint64_t size)
{
    uint8_t buffer[4096];
    while (size != 0) {
        struct pollfd ready = {.fd = socket, .events = POLLIN};
        const int count = poll(&ready, 1, wait_ms);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        const ssize_t got =
            count <= 0 ? 0 : recv(socket, buffer, size < sizeof buffer ? size : sizeof buffer, 0);
        if (got <= 0) {
            return false;
        }
        alloti_bytes_put(out, buffer, (size_t)got);
        size -= (uint64_t)got;
    }
    return out->status == ALLOT_STATUS_OK;
}

bool wire_receive(int socket, int wait_ms, alloti_bytes *message)
{
    enum { SIZE_BYTES = 4 };
    alloti_bytes head = {0};
    bool is_received = receive_all(socket, wait_ms, &head, SIZE_BYTES);
    if (is_received) {
        alloti_cursor cursor = {.data = head.data, .size = head.size};
        const uint32_t size = alloti_cursor_le32(&cursor);
        is_received = size <= WIRE_SIZE_MAX && receive_all(socket, wait_ms, message, size);
    }
    alloti_bytes_fini(&head);
    return is_received;
}

void wire_put_text(alloti_bytes *message, const char *text)
{
    alloti_bytes_put_varint(message, strlen(text));
    alloti_bytes_put(message, text, strlen(text));
}

void wire_take_text(alloti_cursor *message, char *out)
{
    const uint64_t size = alloti_cursor_varint(message);
    const uint8_t *const text = alloti_cursor_take(message, size);
    const uint64_t kept = size < WIRE_TEXT_MAX ? size : WIRE_TEXT_MAX - 1;
    if (text != NULL) {
        memcpy(out, text, kept);
    }
    out[text == NULL ? 0 : kept] = '\0';
}

static void put_notes(alloti_bytes *message, const int *notes, uint32_t count)
{
    alloti_bytes_put_varint(message, count);
    for (uint32_t i = 0; i < count; i++) {
        alloti_bytes_put_varint(message, (uint64_t)notes[i]);
    }
}

static uint32_t take_notes(alloti_cursor *message, int *out)
{
    const uint64_t count = alloti_cursor_varint(message);
    if (count > WIRE_NOTES_MAX) {
        message->has_failed = true;
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        out[i] = (int)alloti_cursor_varint(message);
    }
    return (uint32_t)count;
}

void wire_put_choice(alloti_bytes *message, const cudnn_choice *choice)
{
    alloti_bytes_put_varint(message, (uint64_t)choice->status);
    alloti_bytes_put_varint(message, choice->workspace);
    alloti_bytes_put_varint(message, choice->engine);
    put_notes(message, choice->numerical, choice->numerical_count);
    put_notes(message, choice->behavior, choice->behavior_count);
}

void wire_take_choice(alloti_cursor *message, cudnn_choice *out)
{
    out->status = (int)alloti_cursor_varint(message);
    out->workspace = alloti_cursor_varint(message);
    out->engine = alloti_cursor_varint(message);
    out->numerical_count = take_notes(message, out->numerical);
    out->behavior_count = take_notes(message, out->behavior);
}
