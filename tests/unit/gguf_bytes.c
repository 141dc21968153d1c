#include "gguf_bytes.h"
#include "ggl/internal/gguf.h"

#include <stdlib.h>
#include <string.h>

void put_bytes(gguf_bytes *b, const void *data, size_t n) {
    if (n > sizeof b->data - b->n)
        abort();
    if (n > 0)
        memcpy(b->data + b->n, data, n);
    b->n += n;
}

void put_zeros(gguf_bytes *b, size_t n) {
    while (n-- > 0)
        put_u8(b, 0);
}

void put_align(gguf_bytes *b, size_t align) {
    while (b->n % align != 0)
        put_u8(b, 0);
}

void put_u8(gguf_bytes *b, unsigned v) {
    put_bytes(b, &(unsigned char){(unsigned char)v}, 1);
}

void put_u32(gguf_bytes *b, uint32_t v) {
    put_bytes(b, &v, sizeof v);
}

void put_u64(gguf_bytes *b, uint64_t v) {
    put_bytes(b, &v, sizeof v);
}

void put_string(gguf_bytes *b, const char *s) {
    put_u64(b, strlen(s));
    put_bytes(b, s, strlen(s));
}

void put_header(gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys) {
    put_bytes(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_keys);
}

void put_key(gguf_bytes *b, const char *key, uint32_t type) {
    put_string(b, key);
    put_u32(b, type);
}

void put_key_u32(gguf_bytes *b, const char *key, uint32_t v) {
    put_key(b, key, GGL_GGUF_U32);
    put_u32(b, v);
}

void put_key_string(gguf_bytes *b, const char *key, const char *s) {
    put_key(b, key, GGL_GGUF_STRING);
    put_string(b, s);
}

void put_key_array(gguf_bytes *b, const char *key, uint32_t type, uint64_t n) {
    put_key(b, key, GGL_GGUF_ARRAY);
    put_u32(b, type);
    put_u64(b, n);
}

void put_tensor(gguf_bytes *b, const char *name, uint32_t n_dims, uint64_t ne0, uint64_t ne1,
                uint32_t type, uint64_t offset) {
    put_string(b, name);
    put_u32(b, n_dims);
    for (uint32_t d = 0; d < n_dims; d++)
        put_u64(b, d == 0 ? ne0 : d == 1 ? ne1 : 1);
    put_u32(b, type);
    put_u64(b, offset);
}

static void put_numbers(gguf_bytes *b) {
    put_key(b, "n.u8", GGL_GGUF_U8);
    put_u8(b, 200);
    put_key(b, "n.i8", GGL_GGUF_I8);
    put_u8(b, 0x80);
    put_key(b, "n.u16", GGL_GGUF_U16);
    put_bytes(b, &(uint16_t){65535}, 2);
    put_key(b, "n.i16", GGL_GGUF_I16);
    put_bytes(b, &(int16_t){-32768}, 2);
    put_key_u32(b, "n.u32", 4000000000u);
    put_key(b, "n.i32", GGL_GGUF_I32);
    put_u32(b, (uint32_t)-2);
    put_key(b, "n.f32", GGL_GGUF_F32);
    put_bytes(b, &(float){1.5f}, 4);
    put_key(b, "n.u64", GGL_GGUF_U64);
    put_u64(b, UINT64_MAX);
    put_key(b, "n.i64", GGL_GGUF_I64);
    put_u64(b, (uint64_t)INT64_MIN);
    put_key(b, "n.f64", GGL_GGUF_F64);
    put_bytes(b, &(double){-0.1}, 8);
}

void put_good_file(gguf_bytes *b, uint32_t version) {
    b->n = 0;
    put_header(b, version, 5, 18);
    put_key_string(b, "general.architecture", "test");
    put_key_u32(b, "general.alignment", 64);
    put_numbers(b);
    put_key(b, "b.true", GGL_GGUF_BOOL);
    put_u8(b, 1);
    put_key_string(b, "s.empty", "");
    put_key_array(b, "a.u16", GGL_GGUF_U16, 3);
    put_bytes(b, (const uint16_t[]){1, 2, 3}, 6);
    put_key_array(b, "a.bool", GGL_GGUF_BOOL, 2);
    put_bytes(b, "\1\0", 2);
    put_key_array(b, "a.string", GGL_GGUF_STRING, 3);
    put_string(b, "first");
    put_string(b, "");
    put_string(b, "the third");
    put_key_array(b, "a.empty", GGL_GGUF_F32, 0);

    put_tensor(b, "token_embd.weight", 2, 32, 2, GGL_F32, 0); /* 256 bytes */
    put_tensor(b, "blk.0.q", 2, 64, 3, GGL_Q8_0, 256);        /* 204 */
    put_tensor(b, "empty", 1, 0, 1, GGL_F16, 512);
    put_tensor(b, "scalar", 0, 1, 1, GGL_F64, 512); /* 8 */
    put_tensor(b, "four", 4, 3, 2, GGL_I32, 576);   /* 24 */
    put_align(b, 64);
    for (int i = 0; i < 256; i++)
        put_u8(b, (unsigned)i);
    for (int i = 0; i < 204; i++)
        put_u8(b, 0x3c);
    put_align(b, 64);
    put_bytes(b, &(double){2.5}, 8);
    put_align(b, 64);
    for (uint32_t i = 0; i < 6; i++)
        put_u32(b, i);
    put_align(b, 64);
}
