/* Importance matrices, in both formats: whatever opens has sound numbers, and can be merged with
 * itself, which doubles its sums and counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/imatrix_sketch.h"
#include "fuzz.h"
#include "ggl/internal/file.h"

static void check_entry(const imatrix *m, const imatrix_entry *e) {
    require(e->n_col > 0 && e->n_mat > 0 && e->name.n > 0 && strlen(e->name.s) == e->name.n);
    require(llm_imatrix_find(m, e->name.s) == e && llm_imatrix_fits(e, e->n_col, e->n_mat));
    float *mean = malloc((size_t)e->n_col * sizeof *mean);
    require(mean != NULL);
    for (int64_t i = 0; i < e->n_mat; i++) {
        require(e->count[i] >= 0);
        llm_imatrix_mean(e, e->n_col, i, mean);
        for (int64_t k = 0; k < e->n_col; k++)
            require(mean[k] >= 0 && isfinite(mean[k]));
    }
    float *dir = e->sketch ? malloc((size_t)e->n_col * (size_t)e->n_sketch * sizeof *dir) : NULL;
    float *own = malloc((size_t)e->n_col * sizeof *own);
    require(!dir == !e->sketch && own);
    if (dir)
        llm_imatrix_directions(e, dir, own, mean);
    for (int64_t i = 0; i < e->n_col * e->n_sketch; i++)
        require(isfinite(dir[i]));
    free(own);
    free(dir);
    free(mean);
}

static void merge(imatrix *m, const uint8_t *data, size_t size) {
    imatrix *again;
    require(llm_imatrix_open_memory(&again, data, size, "fuzz", 7, NULL) == GGL_OK);
    if (llm_imatrix_merge(again, m, NULL) == GGL_OK)
        for (size_t i = 0; i < llm_imatrix_n(m); i++) {
            const imatrix_entry *a = llm_imatrix_at(m, i), *b = llm_imatrix_at(again, i);
            require(b->count[0] == 2 * a->count[0] && b->sum2[0] == 2 * a->sum2[0]);
        }
    llm_imatrix_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    imatrix *m = NULL;
    ggl_error err = {0};
    if (llm_imatrix_open_memory(&m, data, size, "fuzz", 7, &err) != GGL_OK) {
        require(!m && err.status != GGL_OK && strncmp(err.msg, "fuzz: ", 6) == 0);
        return 0;
    }
    require(llm_imatrix_n(m) > 0 && llm_imatrix_n_chunks(m) >= 0 && llm_imatrix_chunk_size(m) > 0);
    for (size_t i = 0; i < llm_imatrix_n(m); i++)
        check_entry(m, llm_imatrix_at(m, i));
    merge(m, data, size);
    llm_imatrix_free(m);
    return 0;
}

/* 0: GGUF, a plain weight and three experts, one without rows; 1: the old format. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char dat[] =
        "\1\0\0\0\23\0\0\0blk.0.attn_q.weight\2\0\0\0\3\0\0\0\0\0\0\0\0\0\0\100\0\0\0\77"
        "\2\0\0\0\5\0\0\0a.txt";
    char path[] = "/tmp/fuzz-imatrix-XXXXXX";
    imatrix *m = NULL;
    imatrix_entry *e;
    ggl_file_map map = {.data = dat, .size = sizeof dat - 1};
    if (k > 1)
        return false;
    const int fd = mkstemp(path);
    require(fd >= 0 && llm_imatrix_new(&m, 7, NULL) == GGL_OK);
    require(llm_imatrix_add(m, "blk.0.attn_q.weight", 4, 1, &e, NULL) == GGL_OK);
    e->count[0] = 14;
    e->sum2[1] = 2.5F;
    require(llm_imatrix_add(m, "blk.0.ffn_up_exps.weight", 2, 3, &e, NULL) == GGL_OK);
    e->count[0] = 13;
    e->count[2] = 1;
    e->sum2[5] = 1e-3F;
    llm_imatrix_count_chunks(m);
    require(llm_imatrix_add_dataset(m, "text.txt", NULL) == GGL_OK);
    require(llm_imatrix_write(m, path, NULL) == GGL_OK);
    llm_imatrix_free(m);
    if (k == 0)
        require(ggl_file_map_open(&map, path, NULL) == GGL_OK);
    *size = map.size;
    *data = malloc(map.size);
    require(*data != NULL);
    memcpy(*data, map.data, map.size);
    if (k == 0)
        ggl_file_map_close(&map);
    close(fd);
    unlink(path);
    return true;
}
