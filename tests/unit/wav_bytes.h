/* Builds the bytes of WAV files. */
#ifndef TEST_WAV_BYTES_H
#define TEST_WAV_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WAV_MOST = 1 << 16 };

typedef struct wav_bytes {
    unsigned char data[WAV_MOST];
    size_t n;
} wav_bytes;

static inline void wav_put(wav_bytes *w, const void *data, size_t n) {
    if (n > sizeof w->data - w->n)
        abort();
    memcpy(w->data + w->n, data, n);
    w->n += n;
}

static inline void wav_number(wav_bytes *w, uint64_t x, int n) {
    for (; n > 0; n--, x >>= 8)
        wav_put(w, &(unsigned char){(unsigned char)x}, 1);
}

static inline void wav_begin(wav_bytes *w, const char *kind, uint32_t size) {
    w->n = 0;
    wav_put(w, kind, 4);
    wav_number(w, size, 4);
    wav_put(w, "WAVE", 4);
}

static inline void wav_chunk(wav_bytes *w, const char *id, uint32_t size) {
    wav_put(w, id, 4);
    wav_number(w, size, 4);
}

/* extensible: the tag is in a longer chunk. */
static inline void wav_format(wav_bytes *w, int tag, int n_channels, int rate, int n_frame,
                              int bits, int extensible) {
    wav_chunk(w, "fmt ", extensible ? 40 : 16);
    wav_number(w, extensible ? 0xfffe : (uint64_t)tag, 2);
    wav_number(w, (uint64_t)n_channels, 2);
    wav_number(w, (uint64_t)rate, 4);
    wav_number(w, (uint64_t)(rate * n_frame), 4);
    wav_number(w, (uint64_t)n_frame, 2);
    wav_number(w, (uint64_t)bits, 2);
    if (!extensible)
        return;
    wav_number(w, 22, 2);
    wav_number(w, (uint64_t)bits, 2);
    wav_number(w, 3, 4); /* which loudspeakers */
    wav_number(w, (uint64_t)tag, 2);
    wav_put(w, "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
}

/* A chunk of n bytes, with its padding. */
static inline void wav_data(wav_bytes *w, const char *id, const void *data, size_t n) {
    wav_chunk(w, id, (uint32_t)n);
    wav_put(w, data, n);
    wav_put(w, "\0", n % 2);
}

#endif
