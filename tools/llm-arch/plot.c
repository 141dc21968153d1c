#include "plot.h"

#include <inttypes.h>
#include <string.h>

#include "common/char_width.h"
#include "common/drawing.h"
#include "ggl/internal/os_fs.h"

static const struct {
    int series;
    const char *text;
} kinds[] = {[FIGURE_PORT] = {DRAWING_BARE, NULL},
             [FIGURE_PRODUCT] = {0, "product with weights"},
             [FIGURE_ATTENTION] = {3, "attention"},
             [FIGURE_POSITION] = {5, "rotation by position"},
             [FIGURE_ROW] = {4, "norms and sums of a row"},
             [FIGURE_CURVE] = {2, "function of each element"},
             [FIGURE_PLUS] = {DRAWING_INK, NULL},
             [FIGURE_CHOICE] = {1, "choice"},
             [FIGURE_STATE] = {6, "state from token to token"},
             [FIGURE_MOVE] = {7, "rearrangement"}};

/* Writes a rounded number, like "1.2 M". */
static const char *count_text(uint64_t n, char *buf, size_t size) {
    static const char *const unit[] = {"", " k", " M", " G", " T"};
    double x = (double)n;
    int k = 0;
    for (; x >= 1000 && k < 4; k++)
        x /= 1000;
    snprintf(buf, size, k && x < 100 ? "%.1f%s" : "%.0f%s", x, unit[k]);
    return buf;
}

static bool is_exit(const figure_node *n) {
    return n->kind == FIGURE_PORT && !n->t;
}

static bool is_sum(const figure_node *n) {
    return n->kind == FIGURE_PLUS && strcmp(n->title, "+") == 0;
}

static void add_node(drawing *d, const figure_node *n, const char *backend) {
    const char *tip = n->t && n->t->origin ? n->t->origin : n->title;
    drawing_node to = {.series = kinds[n->kind].series,
                       .title = n->title,
                       .corner = n->origin[0] ? n->origin : NULL,
                       .tip = tip,
                       .dashed = n->by_body,
                       .circle = n->kind == FIGURE_PLUS && n->n_lines == 0 &&
                                 char_columns(n->title, strlen(n->title)) <= 2,
                       .last = is_exit(n)};
    if (n->kind != FIGURE_PORT)
        to.tip = drawing_text(d, "%s: run on %s%s", tip, backend, n->by_body ? " by its body" : "");
    for (int i = 0; i < n->n_lines; i++)
        to.line[i] = n->line[i];
    drawing_node_add(d, &to);
}

static void add_block(drawing *d, const figure_block *b, int row, const char *backend) {
    char count[32];
    const char *params =
        drawing_text(d, "%s parameters", count_text(b->params, count, sizeof count));
    if (b->n_layers > 1)
        params = drawing_text(d, "%s, %d times", params, b->n_layers);
    drawing_block_add(
        d, &(drawing_block){
               .title = b->title, .note = params, .row = row, .several = b->n_layers > 1});
    for (int i = 0; i < b->n; i++) {
        const figure_node *n = &b->node[i];
        add_node(d, n, backend);
        for (int k = 0; k < n->n_in; k++) {
            const figure_node *from = &b->node[n->in[k]];
            /* the stream that layers add to goes from a port or a sum to a sum, or to the port where it leaves */
            const bool stream =
                (from->kind == FIGURE_PORT || is_sum(from)) && (is_sum(n) || is_exit(n));
            drawing_edge_add(d, &(drawing_edge){n->in[k], i, n->in_shape[k], stream});
        }
    }
}

static const char *base_name(const char *path) {
    const char *slash = ggl_os_last_separator(path);
    return slash ? slash + 1 : path;
}

static void describe(drawing *d, const figure *f, int n, const char *name, const char *of,
                     const char *backend) {
    uint64_t params = 0;
    bool bodies = false;
    char count[32];
    for (int i = 0, row = 0; i < n; i++)
        for (int k = 0; k < f[i].n; k++) { /* layers of all kinds are side by side */
            const figure_block *b = &f[i].block[k];
            row += !(b->n_layers > 0 && k > 0 && f[i].block[k - 1].n_layers > 0);
            add_block(d, b, row, backend);
            params += b->params * (uint64_t)(b->n_layers > 1 ? b->n_layers : 1);
            for (int j = 0; j < b->n; j++)
                bodies |= b->node[j].by_body;
        }
    d->title = base_name(name);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].text)
            drawing_legend(d, kinds[k].series, 0.15, kinds[k].text);
    drawing_note(d, drawing_text(d, "%s · %s parameters · on %s", base_name(of),
                                 count_text(params, count, sizeof count), backend));
    drawing_note(d, drawing_text(d,
                                 "At the edges: shapes of one token's values, innermost first; in "
                                 "corners: lines of the descriptor%s",
                                 bodies ? "; dashed: run by the composite's body" : ""));
}

ggl_status figure_draw(FILE *out, const figure *f, int n, const char *name, const char *of,
                       const char *backend, ggl_error *err) {
    drawing d = {0};
    describe(&d, f, n, name, of, backend);
    ggl_status st = drawing_write(&d, out, err);
    drawing_fini(&d);
    if (st == GGL_LIMIT) {
        const ggl_error why = *err;
        st = ggl_fail(err, st, "%s; --format dot and text have no such limit", why.msg);
    }
    return st;
}
