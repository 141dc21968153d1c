/* test-picture RULE PICTURE OUT: prepares a picture as a model's rule says, and writes each step to a file.
 *
 * RULE: numbers with commas between them: patch, size, block, fit, resize, least, most, color, mean, std, first and table of llm_arch_picture, cells, and of its
 * tiles by, least, most, fit, resize and color. OUT.seen, OUT.tiles: bytes; OUT.pixels,
 * OUT.rows, OUT.share: floats; OUT.places, OUT.entry: integers of 32 bits, y and then x of all rows. Prints width, height, patches across and down,
 * and rows, as planned from the picture's size; and tiles across and down, and the width and height of one. Exit code 0, or 1 with a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "picture/prepare.h"
#include "picture/tiles.h"

enum { N = 27 };

static bool read_rule(llm_arch_picture *r, const char *text) {
    double x[N];
    for (int i = 0; i < N; i++) {
        char *end;
        x[i] = strtod(text, &end);
        if (end == text || *end != (i < N - 1 ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    *r = (llm_arch_picture){.patch = (int64_t)x[0],
                            .size = (int64_t)x[1],
                            .block = (int64_t)x[2],
                            .fit = (llm_arch_fit)x[3],
                            .resize = (llm_arch_resize)x[4],
                            .least = (int64_t)x[5],
                            .most = (int64_t)x[6],
                            .color = {(uint8_t)x[7], (uint8_t)x[8], (uint8_t)x[9]},
                            .mean = {x[10], x[11], x[12]},
                            .std = {x[13], x[14], x[15]},
                            .first = (int64_t)x[16],
                            .table = (int64_t)x[17],
                            .cells = x[18] != 0,
                            .tiles = {.by = (llm_arch_tiling)x[19],
                                      .least = (int64_t)x[20],
                                      .most = (int64_t)x[21],
                                      .fit = (llm_arch_fit)x[22],
                                      .resize = (llm_arch_resize)x[23],
                                      .color = {(uint8_t)x[24], (uint8_t)x[25], (uint8_t)x[26]}}};
    return true;
}

static ggl_status write_file(const char *out, const char *what, const void *data, size_t size,
                             size_t n, ggl_error *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", out, what);
    FILE *f = fopen(path, "wb");
    const bool is_written = f && (n == 0 || fwrite(data, size, n, f) == n);
    return (f ? fclose(f) == 0 : false) && is_written ? GGL_OK
                                                      : ggl_fail(err, GGL_IO, "%s: failed", path);
}

static ggl_status write_rows(const char *out, const llm_picture_rows *r, ggl_error *err) {
    const size_t n = (size_t)r->n, n_table = r->entry ? (size_t)r->n_entry * n : 0;
    int32_t *places = calloc(2 * n + 1, sizeof *places);
    if (!places)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(places, r->y, n * sizeof *places);
    memcpy(places + n, r->x, n * sizeof *places);
    ggl_status st = write_file(out, "rows", r->row, sizeof(float), n * (size_t)r->n_row, err);
    if (st == GGL_OK)
        st = write_file(out, "places", places, sizeof *places, 2 * n, err);
    if (st == GGL_OK)
        st = write_file(out, "entry", r->entry, sizeof(int32_t), n_table, err);
    if (st == GGL_OK)
        st = write_file(out, "share", r->share, sizeof(float), n_table, err);
    free(places);
    return st;
}

static ggl_status write_pixels(const char *out, const llm_arch_picture *rule, const llm_picture *p,
                               ggl_error *err) {
    const size_t n = (size_t)(p->width * p->height * 3);
    float *x = calloc(n, sizeof *x);
    if (!x)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    llm_picture_normalize(x, rule, p);
    ggl_status st = write_file(out, "pixels", x, sizeof *x, n, err);
    if (st == GGL_OK)
        st = write_file(out, "seen", p->rgb, 1, n, err);
    free(x);
    return st;
}

static ggl_status write_tiles(const char *out, const llm_arch_picture *rule,
                              const llm_picture_tiles *t, const llm_picture *from, const char *name,
                              ggl_error *err) {
    const size_t each = (size_t)(t->width * t->height * 3), n = (size_t)(t->nx * t->ny);
    uint8_t *all = calloc(each * n + 1, 1);
    ggl_status st = all ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t k = 0; k < n && st == GGL_OK; k++) {
        llm_picture *p;
        st = llm_picture_tile(&p, rule, t, from, (int64_t)k / t->nx, (int64_t)k % t->nx, name, err);
        if (st == GGL_OK)
            memcpy(all + k * each, p->rgb, each);
        llm_picture_free(p);
    }
    if (st == GGL_OK)
        st = write_file(out, "tiles", all, each, n, err);
    free(all);
    return st;
}

static ggl_status run(const llm_arch_picture *rule, const char *path, const char *out,
                      ggl_error *err) {
    llm_picture *p = NULL, *seen = NULL;
    llm_picture_rows *r = NULL;
    llm_picture_fit f;
    llm_picture_tiles t;
    ggl_status st = llm_picture_read_file(&p, path, NULL, err);
    if (st == GGL_OK)
        st = llm_picture_fit_for(&f, rule, p->width, p->height, path, err);
    if (st == GGL_OK)
        st = llm_picture_tiles_for(&t, rule, p->width, p->height, path, err);
    if (st == GGL_OK)
        st = write_tiles(out, rule, &t, p, path, err);
    if (st == GGL_OK)
        st = llm_picture_seen(&seen, rule, p, path, err);
    if (st == GGL_OK)
        st = write_pixels(out, rule, seen, err);
    if (st == GGL_OK)
        st = llm_picture_rows_new(&r, rule, seen, path, err);
    if (st == GGL_OK)
        st = write_rows(out, r, err);
    if (st == GGL_OK && (r->n != f.n_rows || r->nx != f.nx || r->ny != f.ny ||
                         seen->width != f.width || seen->height != f.height))
        st = ggl_fail(err, GGL_FORMAT, "not as planned");
    if (st == GGL_OK)
        printf("%lld %lld %lld %lld %lld %lld %lld %lld %lld\n", (long long)f.width,
               (long long)f.height, (long long)f.nx, (long long)f.ny, (long long)f.n_rows,
               (long long)t.nx, (long long)t.ny, (long long)t.width, (long long)t.height);
    llm_picture_rows_free(r);
    llm_picture_free(seen);
    llm_picture_free(p);
    return st;
}

int main(int argc, char **argv) {
    ggl_error err = {.msg = "wrong arguments"};
    llm_arch_picture rule;
    const bool is_read = argc == 4 && read_rule(&rule, argv[1]);
    if (is_read && run(&rule, argv[2], argv[3], &err) == GGL_OK)
        return 0;
    fprintf(stderr, "test-picture: %s\n", err.msg);
    return 1;
}
