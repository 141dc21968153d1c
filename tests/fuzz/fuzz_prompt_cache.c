/* Prompt caches: any bytes as a file, and a file with a changed head whose digest is right. What is
 * accepted must leave a slot that can go on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "llm/internal/prompt_cache.h"
#include "run/prompt_cache_file.h"

enum { WIDTH = 16, VOCAB = 8, N = 20 };

static const char text[] =
    "arch tiny\nlanguage 1\ntoken_embd [16, n_vocab]\nx = token_embd[token]\n"
    "h = heads(x, 2)\nx = x + attention(h, h, h)\n"
    "x = x + flat(sum(transpose(recent(x, 3))))\n"
    "logits = linear(x, token_embd)\n";
static const int32_t prompt[N] = {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 5, 3};

static struct {
    ggl_backend *cpu, *reference;
    void *gguf;
    llm_model *model;
    llm_session *session;
    llm_prompt_cache *cache;
    int fd; /* of a file in memory: a disk would take most of the time */
    char path[64];
    uint8_t *good; /* a file as it is written */
    size_t good_size;
} w;

static void close_all(void) {
    llm_prompt_cache_free(w.cache);
    llm_session_free(w.session);
    llm_model_free(w.model);
    ggl_backend_close(w.cpu);
    ggl_backend_close(w.reference);
    ggl_free(w.gguf);
    free(w.good);
    close(w.fd);
}

static void open_model(void) {
    static float embd[WIDTH * VOCAB];
    size_t size;
    for (int i = 0; i < WIDTH * VOCAB; i++)
        embd[i] = 0.4f * sinf((float)i * 1.7f);
    ggl_gguf_writer *g = ggl_gguf_writer_new();
    ggl_gguf_put_string(g, "general.architecture", "tiny", 4);
    ggl_gguf_put_string(g, "general.descriptor", text, sizeof text - 1);
    ggl_gguf_put_tensor(g, "token_embd.weight", GGL_F32, 2, (int64_t[]){WIDTH, VOCAB}, embd);
    require(ggl_gguf_writer_write_memory(g, &w.gguf, &size, NULL) == GGL_OK);
    ggl_gguf_writer_free(g);
    const llm_model_params mp = {.size = sizeof mp, .arch_dirs = ""};
    require(llm_model_open_memory(&w.model, w.gguf, size, "fuzz", &mp, NULL) == GGL_OK);
}

static void read_good(void) {
    FILE *f = fopen(w.path, "rb");
    w.good = malloc(1 << 20);
    require(f && w.good);
    w.good_size = fread(w.good, 1, 1 << 20, f);
    fclose(f);
    unlink(w.path);
    w.fd = memfd_create("prompt cache", 0);
    require(w.fd >= 0);
    snprintf(w.path, sizeof w.path, "/proc/self/fd/%d", w.fd);
}

static void open_all(void) {
    const ggl_backend_params one = {.size = sizeof one, .n_threads = 1};
    if (w.cache)
        return;
    require(ggl_backend_open(&w.cpu, "cpu", &one, NULL) == GGL_OK &&
            ggl_backend_open(&w.reference, "reference", NULL, NULL) == GGL_OK);
    open_model();
    llm_session_params sp = llm_session_default();
    sp.n_ctx = 2 * N;
    sp.n_ubatch = N;
    sp.backend = &w.cpu;
    sp.n_backends = 1;
    sp.fold = w.reference;
    require(llm_session_new(&w.session, w.model, &sp, NULL) == GGL_OK &&
            llm_session_alloc(w.session, NULL) == GGL_OK);
    const llm_prompt_cache_params cp = {.size = sizeof cp, .model = w.model, .session = w.session};
    const llm_batch b = {.n = N - 1, .token = prompt};
    require(llm_prompt_cache_new(&w.cache, &cp, NULL) == GGL_OK &&
            llm_session_eval(w.session, &b, NULL) == GGL_OK);
    const char *tmp = getenv("TMPDIR");
    snprintf(w.path, sizeof w.path, "%.40s/fuzz-cache-%d", tmp ? tmp : "/tmp", (int)getpid());
    require(llm_prompt_cache_save(w.cache, w.path, prompt, N - 1, NULL) == GGL_OK);
    read_good();
    atexit(close_all);
}

static void try_file(const void *data, size_t size) {
    int64_t n = -1;
    require(ftruncate(w.fd, 0) == 0 && pwrite(w.fd, data, size, 0) == (ssize_t)size);
    const ggl_status st = llm_prompt_cache_load(w.cache, w.path, prompt, N, &n, NULL);
    require(n >= 0 && n < N && n == llm_session_n_past(w.session, 0));
    require(st == GGL_OK || n == 0);
    const llm_batch b = {.n = N - n, .token = prompt + n};
    require(llm_session_eval(w.session, &b, NULL) == GGL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    open_all();
    try_file(data, size);
    uint8_t *sealed = malloc(size + 1);
    require(sealed != NULL);
    memcpy(sealed, data, size);
    llm_prompt_cache_seal(sealed, size);
    try_file(sealed, size);
    free(sealed);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    open_all();
    if (k > 0)
        return false;
    *size = w.good_size;
    *data = malloc(w.good_size);
    require(*data != NULL);
    memcpy(*data, w.good, w.good_size);
    return true;
}
