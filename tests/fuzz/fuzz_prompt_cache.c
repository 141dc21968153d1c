/* Prompt caches: any bytes as a file, and a file with a changed head whose digest is right. What is
 * accepted must leave a slot that can go on, and states that lie in the file one after another. */
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

enum { WIDTH = 16, VOCAB = 8, N = 20, N_SEEDS = 3, N_STATES = 2, N_ROWS = 3 };

static const char text[] =
    "arch tiny\nlanguage 1\ntoken_embd [16, n_vocab]\nx = given(token_embd[token])\n"
    "h = heads(x, 2)\nx = x + attention(h, h, h)\n"
    "x = x + flat(sum(transpose(recent(x, 3))))\n"
    "logits = linear(x, token_embd)\n";
static int32_t prompt[N] = {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 5, 3};

static struct {
    ggl_backend *cpu, *reference;
    void *gguf;
    llm_model *model;
    llm_session *session;
    llm_media *media; /* the first tokens of the prompt are rows of a picture */
    llm_prompt_cache *cache;
    int fd; /* of a file in memory: a disk would take most of the time */
    char path[64];
    struct {
        uint8_t *data;
        size_t size;
    } good
        [N_SEEDS]; /* a file as it is written; one with each state twice; one whose rows have the last ids that there are */
} w;

static void close_all(void) {
    llm_prompt_cache_free(w.cache);
    llm_session_free(w.session);
    llm_media_free(w.media);
    llm_model_free(w.model);
    ggl_backend_close(w.cpu);
    ggl_backend_close(w.reference);
    ggl_free(w.gguf);
    for (int k = 0; k < N_SEEDS; k++)
        free(w.good[k].data);
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

static void read_good(int k) {
    FILE *f = fopen(w.path, "rb");
    w.good[k].data = malloc(1 << 20);
    require(f && w.good[k].data);
    w.good[k].size = fread(w.good[k].data, 1, 1 << 20, f);
    fclose(f);
    unlink(w.path);
}

/* Gives the rows ids of which there is no next one. */
static void give_last_ids(uint8_t *data, size_t size) {
    int32_t last[N_ROWS];
    int64_t first = prompt[0], lowest = INT32_MIN;
    for (int i = 0; i < N_ROWS; i++)
        last[i] = INT32_MIN;
    for (size_t i = 0; i + sizeof prompt <= size; i += 8)
        if (memcmp(data + i, prompt, sizeof last) == 0)
            memcpy(data + i, last, sizeof last);
        else if (memcmp(data + i, &first, sizeof first) == 0)
            memcpy(data + i, &lowest, sizeof lowest);
    llm_prompt_cache_seal(data, size);
}

static void open_memory(void) {
    w.fd = memfd_create("prompt cache", 0);
    require(w.fd >= 0);
    snprintf(w.path, sizeof w.path, "/proc/self/fd/%d", w.fd);
}

static void show_picture(void) {
    static const uint8_t id[LLM_MEDIA_ID] = {7};
    static const float rows[N_ROWS * WIDTH] = {0.5f, 1};
    int32_t first;
    const llm_media_rows x = {.row = rows, .n = N_ROWS, .n_row = WIDTH};
    require(llm_media_new(&w.media, 1 << 20, NULL) == GGL_OK &&
            llm_media_add(w.media, id, &x, &first, NULL) == GGL_OK);
    for (int i = 0; i < N_ROWS; i++)
        prompt[i] = first - i;
}

/* Saves the prompt, with the states after some of its tokens. */
static void save_good(void) {
    static const int64_t at[N_STATES + 1] = {5, 9, N - 1};
    llm_prompt_states x[2 * N_STATES];
    void *data[N_STATES];
    size_t size = 0;
    for (int i = 0; i <= N_STATES; i++) {
        const int64_t n = i > 0 ? at[i - 1] : 0;
        const llm_batch b = {.n = at[i] - n, .token = prompt + n};
        require(llm_session_eval(w.session, &b, NULL) == GGL_OK);
        if (i == N_STATES)
            break;
        require(llm_session_save(w.session, 0, true, &data[i], &size, NULL) == GGL_OK);
        x[i] = x[N_STATES + i] = (llm_prompt_states){at[i], data[i], size};
    }
    for (int k = 0; k < N_SEEDS; k++) {
        llm_prompt_cache_put_states(w.cache, x, k == 1 ? 2 * N_STATES : N_STATES);
        require(llm_prompt_cache_save(w.cache, w.path, prompt, N - 1, NULL) == GGL_OK);
        read_good(k);
    }
    give_last_ids(w.good[2].data, w.good[2].size);
    llm_prompt_cache_put_states(w.cache, NULL, 0);
    for (int i = 0; i < N_STATES; i++)
        ggl_free(data[i]);
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
    show_picture();
    sp.media = w.media;
    require(llm_session_new(&w.session, w.model, &sp, NULL) == GGL_OK &&
            llm_session_alloc(w.session, NULL) == GGL_OK);
    const llm_prompt_cache_params cp = {.size = sizeof cp, .model = w.model, .session = w.session};
    require(llm_prompt_cache_new(&w.cache, &cp, NULL) == GGL_OK);
    const char *tmp = getenv("TMPDIR");
    snprintf(w.path, sizeof w.path, "%.40s/fuzz-cache-%d", tmp ? tmp : "/tmp", (int)getpid());
    save_good();
    open_memory();
    atexit(close_all);
}

/* What a restore handed out. */
typedef struct taken {
    int64_t n;
    const char *end;
} taken;

static void take(void *ctx, const int32_t *id, const llm_prompt_states *x) {
    taken *t = ctx;
    require(x->n > t->n && (const char *)x->data >= t->end);
    for (int64_t i = 0; i < x->n; i++)
        require(id[i] < VOCAB);
    *t = (taken){x->n, (const char *)x->data + x->size};
}

static void try_restore(void) {
    int32_t *id = NULL;
    size_t n = 0, n_all = 0;
    taken t = {0};
    llm_prompt_cache_take_states(w.cache, take, &t);
    const ggl_status st = llm_prompt_cache_restore(w.cache, w.path, &id, &n, &n_all, NULL);
    llm_prompt_cache_take_states(w.cache, NULL, NULL);
    require(st != GGL_OK || (int64_t)n == llm_session_n_past(w.session, 0));
    ggl_free(id);
    const llm_batch b = {.n = 1, .token = prompt + N - 1};
    require(llm_session_eval(w.session, &b, NULL) == GGL_OK);
}

static void try_file(const void *data, size_t size) {
    int64_t n = -1;
    require(ftruncate(w.fd, 0) == 0 && pwrite(w.fd, data, size, 0) == (ssize_t)size);
    const ggl_status st = llm_prompt_cache_load(w.cache, w.path, prompt, N, &n, NULL);
    require(n >= 0 && n < N && n == llm_session_n_past(w.session, 0));
    require(st == GGL_OK || n == 0);
    const llm_batch b = {.n = N - n, .token = prompt + n};
    require(llm_session_eval(w.session, &b, NULL) == GGL_OK);
    try_restore();
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
    if (k >= N_SEEDS)
        return false;
    *size = w.good[k].size;
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, w.good[k].data, *size);
    return true;
}
