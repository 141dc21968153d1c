/* Builds GGUF files byte by byte, right ones and wrong ones. */
#ifndef GGUF_BYTES_H
#define GGUF_BYTES_H

#include "ggl/gguf.h"

typedef struct gguf_bytes {
    unsigned char data[1 << 14];
    size_t n;
} gguf_bytes;

void put_bytes(gguf_bytes *b, const void *data, size_t n);
void put_zeros(gguf_bytes *b, size_t n);
void put_align(gguf_bytes *b, size_t align); /* zeros up to a multiple */
void put_u8(gguf_bytes *b, unsigned v);
void put_u32(gguf_bytes *b, uint32_t v);
void put_u64(gguf_bytes *b, uint64_t v);
void put_string(gguf_bytes *b, const char *s);

void put_header(gguf_bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys);
void put_key(gguf_bytes *b, const char *key, uint32_t type); /* the value is to follow */
void put_key_u32(gguf_bytes *b, const char *key, uint32_t v);
void put_key_string(gguf_bytes *b, const char *key, const char *s);
void put_key_array(gguf_bytes *b, const char *key, uint32_t type,
                   uint64_t n); /* n elements are to follow */
/* ne0 and ne1, both 1 if n_dims is 0, further ones are 1 */
void put_tensor(gguf_bytes *b, const char *name, uint32_t n_dims, uint64_t ne0, uint64_t ne1,
                uint32_t type, uint64_t offset);

/* A file that is right: a key of every type and array type, five tensors, one of them empty. */
void put_good_file(gguf_bytes *b, uint32_t version);

#endif
