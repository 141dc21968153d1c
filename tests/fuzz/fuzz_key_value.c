/* KEY=VALUE of llm-gguf: each is an error, or a value that a file can have and that reads back with the
 * type that was asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ggl/alloc.h"
#include "llm-gguf/key_value.h"

/* Writes a file with the value, and reads it. */
static void write_and_read(const key_value *v) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    void *data;
    size_t size;
    ggl_gguf *f;
    require(w != NULL);
    if (key_value_put("fuzz", w, v, NULL) < 0) {
        require(ggl_gguf_writer_write_memory(w, &data, &size, NULL) == GGL_OK);
        require(ggl_gguf_open_memory(&f, data, size, "again", NULL) == GGL_OK);
        const ggl_gguf_value *read = ggl_gguf_find(f, v->key);
        require(read && v->typed && read->type == v->type && read->is_array == v->is_array);
        ggl_gguf_close(f);
        ggl_free(data);
    }
    ggl_gguf_writer_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool quiet;
    if (!quiet) /* most inputs are errors, whose messages nobody reads */
        quiet = freopen("/dev/null", "w", stderr) != NULL;
    char *word = malloc(size + 3);
    require(word != NULL);
    memcpy(word, "k=", 2);
    for (size_t i = 0; i < size; i++)
        word[2 + i] = data[i] == '@' ? 'x' : (char)data[i]; /* no files */
    word[2 + size] = '\0';
    key_value v;
    if (key_value_read("fuzz", word, &v) < 0)
        write_and_read(&v);
    key_value_fini(&v);
    free(word);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seeds[] = {
        "str:text",        "u8:255", "i64:-9223372036854775808",         "f32:1e-3",  "bool:true",
        "arr[u16]:1, 2,3", "7",      "arr[str]:[\"a, b\", \"\\u00e9\"]", "arr[i8]:[]"};
    if ((size_t)k >= sizeof seeds / sizeof *seeds)
        return false;
    *size = strlen(seeds[k]);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, seeds[k], *size);
    return true;
}
