/* A table of files that are wrong, each with the words its message must hold. */
#include "gguf_bytes.h"
#include "ggl/internal/gguf.h"
#include "test.h"

typedef struct hostile {
    const char *name;
    void (*build)(gguf_bytes *b);
    ggl_status status;
    const char *words;
} hostile;

#define HOSTILE(name_) static void build_##name_(gguf_bytes *b)

/* the beginning */

HOSTILE(zip) {
    put_bytes(b, "PK\3\4 and so on", 14);
}
HOSTILE(lfs) {
    put_bytes(b, "version https://git-lfs.github.com/spec/v1\n", 43);
}
HOSTILE(xz) {
    put_bytes(b,
              "\xfd"
              "7zXZ\0\0\4",
              8);
}

HOSTILE(gzip) {
    put_bytes(b, "\x1f\x8b\x08\x08", 4);
}

HOSTILE(web_page) {
    put_bytes(b, "<!DOCTYPE html><html>", 21);
}
HOSTILE(no_entry) {
    put_bytes(b, "Entry not found", 15);
}
HOSTILE(old_ggml) {
    put_bytes(b, "tjgg\1\0\0\0", 8);
}
HOSTILE(safetensors) {
    put_u64(b, 2);
    put_bytes(b, "{}", 2);
}
HOSTILE(nonsense) {
    put_bytes(b, "\1\2ab\n", 5);
}
HOSTILE(three_bytes) {
    put_bytes(b, "GGU", 3);
}
HOSTILE(three_wrong_bytes) {
    put_bytes(b, "GGX", 3);
}
HOSTILE(version_0) {
    put_header(b, 0, 0, 0);
}
HOSTILE(version_1) {
    put_header(b, 1, 0, 0);
}
HOSTILE(version_4) {
    put_header(b, 4, 0, 0);
}
HOSTILE(big_endian) {
    put_header(b, 0x03000000, 0, 0);
}
HOSTILE(keys_2_63) {
    put_header(b, 3, 0, (uint64_t)1 << 63);
}
HOSTILE(keys_all_bits) {
    put_header(b, 3, 0, UINT64_MAX);
}
HOSTILE(tensors_2_63) {
    put_header(b, 3, (uint64_t)1 << 63, 0);
}
HOSTILE(tensors_one_too_many) {
    put_header(b, 3, 5, 0);
    put_zeros(b, 5 * 25 - 1);
}
HOSTILE(keys_too_many) {
    put_header(b, 3, 0, 2);
    put_key(b, "a", GGL_GGUF_U8);
    put_u8(b, 0);
    put_zeros(b, 13);
}

/* keys */

HOSTILE(key_length_2_63) {
    put_header(b, 3, 0, 1);
    put_u64(b, (uint64_t)1 << 63);
    put_zeros(b, 100);
}
HOSTILE(key_length_all_bits) {
    put_header(b, 3, 0, 1);
    put_u64(b, UINT64_MAX);
    put_zeros(b, 100);
}
HOSTILE(key_empty) {
    put_header(b, 3, 0, 1);
    put_key_u32(b, "", 1);
}
HOSTILE(key_with_zero) {
    put_header(b, 3, 0, 1);
    put_u64(b, 3);
    put_bytes(b, "a\0b", 3);
    put_u32(b, GGL_GGUF_U8);
    put_u8(b, 1);
}
HOSTILE(key_twice) {
    put_header(b, 3, 0, 3);
    put_key_u32(b, "general.a", 1);
    put_key_u32(b, "general.b", 1);
    put_key_u32(b, "general.a", 2);
}
HOSTILE(value_type_13) {
    put_header(b, 3, 0, 1);
    put_key(b, "k", 13);
    put_zeros(b, 10);
}
HOSTILE(value_type_all_bits) {
    put_header(b, 3, 0, 1);
    put_key(b, "k", UINT32_MAX);
    put_zeros(b, 10);
}
HOSTILE(bool_2) {
    put_header(b, 3, 0, 1);
    put_key(b, "flag", GGL_GGUF_BOOL);
    put_u8(b, 2);
}
HOSTILE(bool_in_array) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "flags", GGL_GGUF_BOOL, 3);
    put_bytes(b, "\1\0\xff", 3);
}
HOSTILE(nested_array) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "k", GGL_GGUF_ARRAY, 1);
    put_zeros(b, 30);
}
HOSTILE(array_type_99) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "k", 99, 1);
    put_zeros(b, 30);
}
HOSTILE(array_2_63) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "k", GGL_GGUF_U64, (uint64_t)1 << 63);
    put_zeros(b, 30);
}
HOSTILE(array_product_wraps) { /* 2^61 * 8 = 2^64 */
    put_header(b, 3, 0, 1);
    put_key_array(b, "k", GGL_GGUF_U64, (uint64_t)1 << 61);
    put_zeros(b, 30);
}
HOSTILE(array_one_short) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "k", GGL_GGUF_U32, 4);
    put_zeros(b, 15);
}
HOSTILE(strings_2_63) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "tokens", GGL_GGUF_STRING, (uint64_t)1 << 63);
    put_zeros(b, 64);
}
HOSTILE(string_in_array_too_long) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "tokens", GGL_GGUF_STRING, 3);
    put_string(b, "ok");
    put_u64(b, 1000);
    put_zeros(b, 20);
}
HOSTILE(string_value_too_long) {
    put_header(b, 3, 0, 1);
    put_key(b, "general.name", GGL_GGUF_STRING);
    put_u64(b, UINT64_MAX - 7);
    put_zeros(b, 20);
}
HOSTILE(alignment_0) {
    put_header(b, 3, 0, 1);
    put_key_u32(b, "general.alignment", 0);
}
HOSTILE(alignment_3) {
    put_header(b, 3, 0, 1);
    put_key_u32(b, "general.alignment", 3);
}
HOSTILE(alignment_string) {
    put_header(b, 3, 0, 1);
    put_key_string(b, "general.alignment", "32");
}
HOSTILE(alignment_array) {
    put_header(b, 3, 0, 1);
    put_key_array(b, "general.alignment", GGL_GGUF_U32, 1);
    put_u32(b, 32);
}
HOSTILE(alignment_2_31) {
    put_header(b, 3, 1, 1);
    put_key_u32(b, "general.alignment", 1u << 31);
    put_tensor(b, "x", 1, 8, 1, GGL_F32, 0);
    put_zeros(b, 64);
}
/* The name's length brings the data to an odd multiple of the alignment. */
static void name_of_length(gguf_bytes *b, uint32_t alignment, uint32_t type) {
    char name[16] = "";
    for (size_t n = 1; n < 9; n++) {
        name[n - 1] = 'x';
        b->n = 0;
        put_header(b, 3, 1, 1);
        put_key_u32(b, "general.alignment", alignment);
        put_tensor(b, name, 1, 1, 1, type, 0);
        if (b->n % 8 == alignment)
            break;
    }
    put_zeros(b, 8);
}
HOSTILE(f32_at_1) {
    name_of_length(b, 1, GGL_F32);
}
HOSTILE(f32_at_2) {
    name_of_length(b, 2, GGL_F32);
}
HOSTILE(f16_at_1) {
    name_of_length(b, 1, GGL_F16);
}
HOSTILE(f64_at_4) {
    name_of_length(b, 4, GGL_F64);
}
HOSTILE(escaped_name) {
    put_header(b, 3, 0, 1);
    put_key(b, "a\033[31m\n\xff", 13);
    put_zeros(b, 4);
}

/* tensors */

static void one_tensor(gguf_bytes *b, uint32_t n_dims, uint64_t ne0, uint64_t ne1, uint32_t type,
                       uint64_t offset) {
    put_header(b, 3, 1, 0);
    put_tensor(b, "blk.0.attn_q.weight", n_dims, ne0, ne1, type, offset);
    put_align(b, 32);
    put_zeros(b, 256);
}

HOSTILE(seven_dims) {
    one_tensor(b, 7, 1, 1, GGL_F32, 0);
}
HOSTILE(dims_all_bits) {
    put_header(b, 3, 1, 0);
    put_string(b, "x");
    put_u32(b, UINT32_MAX);
    put_zeros(b, 100);
}
HOSTILE(dim_2_63) {
    one_tensor(b, 1, (uint64_t)1 << 63, 1, GGL_F32, 0);
}
HOSTILE(product_wraps_to_0) {
    one_tensor(b, 2, (uint64_t)1 << 32, (uint64_t)1 << 32, GGL_F32, 0);
}
HOSTILE(bytes_wrap_to_0) {
    one_tensor(b, 1, (uint64_t)1 << 62, 1, GGL_F32, 0);
}
HOSTILE(product_wraps_beside_0) {
    put_header(b, 3, 1, 0);
    put_string(b, "x");
    put_u32(b, 3);
    put_u64(b, (uint64_t)1 << 40);
    put_u64(b, (uint64_t)1 << 40);
    put_u64(b, 0);
    put_u32(b, GGL_F32);
    put_u64(b, 0);
    put_zeros(b, 64);
}
HOSTILE(blocks_wrap) {
    one_tensor(b, 2, INT64_MAX - 31, 64, GGL_Q4_0, 0);
}
HOSTILE(half_a_block) {
    one_tensor(b, 2, 48, 2, GGL_Q8_0, 0);
}
HOSTILE(type_q8_1) {
    one_tensor(b, 2, 256, 1, 9, 0);
}
HOSTILE(type_withdrawn) {
    one_tensor(b, 2, 256, 1, 31, 0);
}
HOSTILE(type_99) {
    one_tensor(b, 2, 32, 1, 99, 0);
}
HOSTILE(type_all_bits) {
    one_tensor(b, 2, 32, 1, UINT32_MAX, 0);
}
HOSTILE(offset_unaligned) {
    one_tensor(b, 1, 8, 1, GGL_F32, 4);
}
HOSTILE(offset_beyond) {
    one_tensor(b, 1, 8, 1, GGL_F32, 1024);
}
HOSTILE(offset_wraps) {
    one_tensor(b, 1, 8, 1, GGL_F32, UINT64_MAX - 31);
}
HOSTILE(offset_2_62) {
    one_tensor(b, 1, 8, 1, GGL_F32, (uint64_t)1 << 62);
}
HOSTILE(size_2_62) {
    one_tensor(b, 2, (uint64_t)1 << 30, (uint64_t)1 << 25, GGL_F32, (uint64_t)1 << 62);
}
HOSTILE(empty_beyond) {
    one_tensor(b, 1, 0, 1, GGL_F32, 1024);
}
HOSTILE(name_empty) {
    put_header(b, 3, 1, 0);
    put_tensor(b, "", 1, 8, 1, GGL_F32, 0);
    put_zeros(b, 64);
}
HOSTILE(name_65) {
    put_header(b, 3, 1, 0);
    put_tensor(b, "0123456789012345678901234567890123456789012345678901234567890123X", 1, 8, 1,
               GGL_F32, 0);
    put_zeros(b, 64);
}
HOSTILE(name_unterminated) {
    put_header(b, 3, 1, 0);
    put_u64(b, 64);
    put_zeros(b, 40);
}
HOSTILE(name_length_all_bits) {
    put_header(b, 3, 1, 0);
    put_u64(b, UINT64_MAX);
    put_zeros(b, 40);
}
HOSTILE(name_twice) {
    put_header(b, 3, 2, 0);
    put_tensor(b, "x", 1, 8, 1, GGL_F32, 0);
    put_tensor(b, "x", 1, 8, 1, GGL_F32, 32);
    put_zeros(b, 96);
}
HOSTILE(overlap) {
    put_header(b, 3, 2, 0);
    put_tensor(b, "a", 1, 16, 1, GGL_F32, 0);
    put_tensor(b, "b", 1, 8, 1, GGL_F32, 32);
    put_zeros(b, 128);
}
/* Between two others: what is said is that it ends beyond the file, not that it overlaps. */
HOSTILE(huge_in_the_middle) {
    put_header(b, 3, 3, 0);
    put_tensor(b, "a", 1, 8, 1, GGL_F32, 0);
    put_tensor(b, "b", 1, (uint64_t)1 << 37, 1, GGL_F32, 32);
    put_tensor(b, "c", 1, 8, 1, GGL_F32, 64);
    put_align(b, 32);
    put_zeros(b, 96);
}
HOSTILE(overlap_unordered) {
    put_header(b, 3, 4, 0);
    put_tensor(b, "a", 1, 8, 1, GGL_F32, 64);
    put_tensor(b, "b", 1, 8, 1, GGL_F32, 0);
    put_tensor(b, "hole", 1, 0, 1, GGL_F32, 32);
    put_tensor(b, "c", 1, 9, 1, GGL_F32, 32);
    put_zeros(b, 256);
}
HOSTILE(same_place) {
    put_header(b, 3, 2, 0);
    put_tensor(b, "a", 1, 8, 1, GGL_F32, 0);
    put_tensor(b, "b", 1, 8, 1, GGL_F32, 0);
    put_zeros(b, 128);
}
HOSTILE(split_in_memory) {
    put_header(b, 3, 0, 1);
    put_key(b, "split.count", GGL_GGUF_U16);
    put_bytes(b, "\3\0", 2);
}
HOSTILE(split_count_string) {
    put_header(b, 3, 0, 1);
    put_key_string(b, "split.count", "3");
}

static const hostile table[] = {
#define H(name, status, words)                                                                     \
    { #name, build_##name, GGL_##status, words }
    H(zip, FORMAT,
      "starts with 'PK\\x03\\x04' (a zip archive, such as a PyTorch checkpoint), so it is not a "
      "GGUF file"),
    H(lfs, FORMAT,
      "a Git LFS pointer: the model itself has not been downloaded; 'git lfs pull' in its folder "
      "does that"),
    H(web_page, FORMAT, "a web page"),
    H(xz, FORMAT, "(compressed: unpack it with unxz), so it is not a GGUF file"),
    H(gzip, FORMAT, "(compressed: unpack it with gunzip)"),
    H(no_entry, FORMAT, "what the Hugging Face Hub answers if the repository has no such file"),
    H(old_ggml, FORMAT, "ggml's format before GGUF"),
    H(safetensors, FORMAT, "a safetensors file"),
    H(nonsense, FORMAT, "starts with '\\x01\\x02ab', so it is not a GGUF file"),
    H(three_bytes, FORMAT,
      "truncated or damaged: the header needs 4 bytes from byte 0 on, the file has 3"),
    H(three_wrong_bytes, FORMAT, "starts with 'GGX', so it is not a GGUF file"),
    H(version_0, UNSUPPORTED, "has GGUF version 0; 2 and 3 are supported"),
    H(version_1, UNSUPPORTED, "has GGUF version 1; 2 and 3 are supported: convert"),
    H(version_4, UNSUPPORTED, "has GGUF version 4"),
    H(big_endian, UNSUPPORTED, "big-endian"),
    H(keys_2_63, FORMAT,
      "counts 9223372036854775808 keys, but the 0 bytes after it hold at most 0"),
    H(keys_all_bits, FORMAT, "18446744073709551615 keys"),
    H(tensors_2_63, FORMAT, "9223372036854775808 tensors"),
    H(tensors_one_too_many, FORMAT, "counts 5 tensors, but the 124 bytes after it hold at most 4"),
    H(keys_too_many, FORMAT, "counts 2 keys"),
    H(key_length_2_63, FORMAT,
      "key 1 of 1: the file is truncated or damaged: the key needs 9223372036854775808 bytes from "
      "byte 32 on, the"
      " file has 132"),
    H(key_length_all_bits, FORMAT, "the key needs 18446744073709551615 bytes"),
    H(key_empty, FORMAT, "key 1 of 1: the key is empty"),
    H(key_with_zero, FORMAT, "the key 'a\\x00b' holds a zero byte"),
    H(key_twice, FORMAT, "key 3 of 3: 'general.a' is already key 1"),
    H(value_type_13, FORMAT, "key 1 of 1: 'k': its value has type 13, the largest known is 12"),
    H(value_type_all_bits, FORMAT, "type 4294967295"),
    H(bool_2, FORMAT, "'flag': a boolean is 2, 0 or 1 is expected"),
    H(bool_in_array, FORMAT, "'flags': a boolean is 255"),
    H(nested_array, UNSUPPORTED, "'k': arrays of arrays are not supported"),
    H(array_type_99, FORMAT, "'k': its elements have type 99"),
    H(array_2_63, FORMAT,
      "9223372036854775808 elements of 8 bytes do not fit into the 30 bytes that remain"),
    H(array_product_wraps, FORMAT, "2305843009213693952 elements of 8 bytes do not fit"),
    H(array_one_short, FORMAT, "4 elements of 4 bytes do not fit into the 15 bytes"),
    H(strings_2_63, FORMAT,
      "'tokens': the file is truncated or damaged: 9223372036854775808 strings do not fit"),
    H(string_in_array_too_long, FORMAT,
      "'tokens': string 2 of 3: the file is truncated or damaged: the string needs"
      " 1000 bytes"),
    H(string_value_too_long, FORMAT, "'general.name': the file is truncated"),
    H(alignment_0, FORMAT, "general.alignment is 0, a power of two is expected"),
    H(alignment_3, FORMAT, "general.alignment is 3, a power of two is expected"),
    H(alignment_string, FORMAT, "general.alignment is string, u32 is expected"),
    H(alignment_array, FORMAT, "general.alignment is an array of u32, u32 is expected"),
    H(f32_at_1, UNSUPPORTED, "of type f32 is at byte"),
    H(f32_at_2, UNSUPPORTED,
      "not a multiple of 4: general.alignment is 2; convert the model again"),
    H(f16_at_1, UNSUPPORTED, "not a multiple of 2: general.alignment is 1"),
    H(f64_at_4, UNSUPPORTED, "not a multiple of 8: general.alignment is 4"),
    H(alignment_2_31, FORMAT, "truncated: it needs 2147483680 bytes"),
    H(escaped_name, FORMAT, "'a\\x1b[31m\\x0a\\xff'"),
    H(seven_dims, FORMAT,
      "bad.gguf: tensor 1 of 1: tensor 'blk.0.attn_q.weight' has 7 dimensions, at most 4 are "
      "supported"),
    H(dims_all_bits, FORMAT, "4294967295 dimensions"),
    H(dim_2_63, FORMAT,
      "dimension 0 of tensor 'blk.0.attn_q.weight' is 9223372036854775808, which is out of range"),
    H(product_wraps_to_0, FORMAT, "the product of its dimensions overflows"),
    H(bytes_wrap_to_0, FORMAT, "the product of its dimensions overflows"),
    H(product_wraps_beside_0, FORMAT, "the product of its dimensions overflows"),
    H(blocks_wrap, FORMAT, "the product of its dimensions overflows"),
    H(half_a_block, FORMAT,
      "has rows of 48 elements, which are not whole blocks of 32, as its type q8_0 needs"),
    H(type_q8_1, UNSUPPORTED,
      "tensor 'blk.0.attn_q.weight' has type Q8_1, which this build does not read"),
    H(type_withdrawn, UNSUPPORTED, "has type Q4_0_4_4"),
    H(type_99, UNSUPPORTED, "has type number 99, which this build does not know"),
    H(type_all_bits, UNSUPPORTED, "has type number 4294967295"),
    H(offset_unaligned, FORMAT, "has offset 4, which is not a multiple of the alignment 32"),
    H(offset_beyond, FORMAT,
      "truncated: it needs 1152 bytes, the file has 352: 800 are missing, from tensor"
      " 'blk.0.attn_q.weight' on"),
    H(offset_wraps, FORMAT, "beyond the end of any file"),
    H(offset_2_62, FORMAT, "truncated: it needs 4611686018427388"),
    H(size_2_62, FORMAT, "truncated: it needs 4755801206503243872 bytes"),
    H(empty_beyond, FORMAT, "truncated"),
    H(name_empty, FORMAT, "tensor 1 of 1: the tensor name is empty"),
    H(name_65, FORMAT, "has 65 bytes, at most 64 are allowed"),
    H(name_unterminated, FORMAT, "the tensor's name needs 64 bytes"),
    H(name_length_all_bits, FORMAT, "the tensor's name needs 18446744073709551615 bytes"),
    H(name_twice, FORMAT, "tensor 2 of 2: 'x' is already tensor 1"),
    H(overlap, FORMAT,
      "the data of tensor 'b' (32 bytes at offset 32) overlaps that of tensor 'a' (64 bytes at"),
    H(huge_in_the_middle, FORMAT, "are missing, from tensor 'b' on"),
    H(overlap_unordered, FORMAT,
      "tensor 'a' (32 bytes at offset 64) overlaps that of tensor 'c' (36 bytes at"),
    H(same_place, FORMAT, "overlaps"),
    H(split_in_memory, UNSUPPORTED, "is one of 3 parts of a split model"),
    H(split_count_string, FORMAT, "key 'split.count' is string, an integer is expected"),
};

static void check_hostile(const hostile *h) {
    gguf_bytes *b = calloc(1, sizeof *b);
    h->build(b);
    unsigned char *copy = malloc(b->n); /* its end is known to the address sanitizer */
    memcpy(copy, b->data, b->n);
    ggl_gguf *f = NULL;
    ggl_error err = {0};
    int before = test_failures;
    CHECK_INT(ggl_gguf_open_memory(&f, copy, b->n, "bad.gguf", &err), h->status);
    CHECK(!f);
    CHECK_INT(err.status, h->status);
    CHECK(strncmp(err.msg, "bad.gguf: ", 10) == 0);
    CHECK(!strchr(err.msg, '\n'));
    CHECK_HAS(err.msg, h->words);
    CHECK_INT(ggl_gguf_open_memory(&f, copy, b->n, "bad.gguf", NULL), h->status);
    if (test_failures > before)
        fprintf(stderr, "in '%s'\n", h->name);
    free(copy);
    free(b);
}

TEST(hostile_files) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_hostile(&table[i]);
}

/* Every byte of a good file, set to each of some values: an error or not, but never a crash; and
 * what opens can be read to its end. */
TEST(every_byte_changed) {
    static gguf_bytes b;
    put_good_file(&b, 3);
    static const unsigned char values[] = {0, 1, 2, 8, 9, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < b.n; at++) {
        unsigned char old = b.data[at];
        for (size_t k = 0; k < sizeof values; k++) {
            ggl_gguf *f;
            b.data[at] = values[k];
            unsigned char *copy = malloc(b.n);
            memcpy(copy, b.data, b.n);
            if (ggl_gguf_open_memory(&f, copy, b.n, "changed", NULL) == GGL_OK) {
                unsigned sum = 0;
                for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
                    const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
                    for (size_t j = 0; j < t->size; j++)
                        sum += ((const unsigned char *)t->data)[j];
                }
                for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
                    const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
                    ggl_str s;
                    for (uint64_t j = 0; j < v->n && ggl_gguf_string(v, j, &s); j++)
                        for (size_t c = 0; c < s.n; c++)
                            sum += (unsigned char)s.s[c];
                }
                CHECK(sum != 1); /* so that it is used */
                ggl_gguf_close(f);
            }
            free(copy);
        }
        b.data[at] = old;
    }
}
