/* Streams of a server that `llm-bench serve` reads. How the bytes are cut must not matter. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "llm-bench/serve_stream.h"

/* Reads the stream in pieces of at most `most` bytes. */
static ggl_status read_stream(serve_answer *a, const char *s, size_t n, size_t most) {
    ggl_status st = GGL_OK;
    ggl_error err = {0};
    for (size_t i = 0; i < n && st == GGL_OK; i += most)
        st = serve_answer_feed(a, s + i, n - i < most ? n - i : most, &err);
    return st == GGL_OK ? serve_answer_end(a, &err) : st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    serve_answer whole = {0}, cut = {0};
    char text[32];
    const char *s = (const char *)data;
    ggl_status a = read_stream(&whole, s, size, size + 1), b = read_stream(&cut, s, size, 3);
    if (a != b || whole.n_pieces != cut.n_pieces || whole.text.n != cut.text.n ||
        whole.prompt_tokens != cut.prompt_tokens ||
        (whole.text.n > 0 && memcmp(whole.text.s, cut.text.s, cut.text.n) != 0))
        abort();
    serve_answer_fini(&whole);
    serve_answer_fini(&cut);
    if (strlen(serve_error_text(s, size, text, sizeof text)) >= sizeof text)
        abort();
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seeds[] = {
        "data: {\"choices\": [{\"text\": \"a\\u00e9\", \"finish_reason\": null}]}\n\n: x\n"
        "data: {\"choices\": [{\"text\": \"\", \"finish_reason\": \"length\"}]}\r\n\r\n"
        "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 2, "
        "\"prompt_tokens_details\": {\"cached_tokens\": 1}}}\n\ndata: [DONE]\n\n",
        "data: {\"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": null}}]}\n\n"
        "data:{\"choices\": [{\"delta\":\ndata: {\"reasoning_content\": \"b\"}}]}\r\r"
        "data: {\"error\": {\"message\": \"c\", \"code\": 500}}\n\n",
        "{\"error\": {\"message\": \"full\"}}"};
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    *size = strlen(seeds[k]);
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, seeds[k], *size);
    return true;
}
