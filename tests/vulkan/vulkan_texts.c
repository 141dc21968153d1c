/* vulkan.texts: attention of texts that are seen whole. The bits of a text do not depend on the others of its batch: neither on how
 * many there are, nor on where its tokens are among theirs. (Up to 8 tokens are another shader's, as they are in products.) */
#include <math.h>

#include "ggl/sched.h"
#include "vulkan_test.h"

enum { TEXTS = 5, MOST = 400, D = 24, E = 20, HEADS = 4, STORE_HEADS = 2, BIAS = 31, ROWS = 9 };
static const int length[TEXTS] = {9, 70, 33, 130, 64};

/* What the tokens of all texts read, in the order of a batch. */
typedef struct tokens {
    int n;
    int32_t pos[MOST], slot[MOST], end[MOST];
    float q[MOST][HEADS][D], k[MOST][STORE_HEADS][D], v[MOST][STORE_HEADS][E];
} tokens;

typedef struct options {
    double window, cap;
    bool bias, rows, alibi;
} options;

static float table[ROWS * STORE_HEADS * D], bias[HEADS * BIAS], row[BIAS], slope[HEADS];

static void draw(uint64_t *seed, float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = test_random_float(seed);
}

static ggl_sched *sched_of(ggl_graph *g, ggl_backend *b, const options *o) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "end", GGL_I32, 0, NULL, true);
    ggl_tensor *q = ggl_graph_input(g, "q", GGL_F32, 2, (int64_t[]){D, HEADS}, true);
    ggl_tensor *k = ggl_graph_input(g, "k", GGL_F32, 2, (int64_t[]){D, STORE_HEADS}, true);
    ggl_tensor *v = ggl_graph_input(g, "v", GGL_F32, 2, (int64_t[]){E, STORE_HEADS}, true);
    ggl_tensor *src[8] = {q, ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, v}, 2, NULL, 0)};
    if (o->alibi)
        src[3] = ggl_graph_weight(g, "slope", GGL_F32, 1, (int64_t[]){HEADS}, slope);
    if (o->bias)
        src[4] = ggl_graph_weight(g, "bias", GGL_F32, 2, (int64_t[]){BIAS, HEADS}, bias);
    if (o->rows) {
        src[5] = src[6] =
            ggl_graph_weight(g, "table", GGL_F32, 3, (int64_t[]){D, ROWS, STORE_HEADS}, table);
        src[7] = ggl_graph_weight(g, "row", GGL_F32, 1, (int64_t[]){BIAS}, row);
    }
    const double num[3] = {NAN, o->window, o->cap};
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ATTEND, src, 8, num, 3));
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    if (CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err))
        CHECK_OK(ggl_sched_alloc(s, &err), &err);
    return s;
}

/* Runs the tokens; NULL: a failure was reported. */
static const float *run(ggl_sched *s, const tokens *t) {
    ggl_error err = {0};
    const struct {
        const char *name;
        const void *data;
        size_t size;
    } in[] = {{"pos", t->pos, sizeof *t->pos}, {"slot", t->slot, sizeof *t->slot},
              {"end", t->end, sizeof *t->end}, {"q", t->q, sizeof *t->q},
              {"k", t->k, sizeof *t->k},       {"v", t->v, sizeof *t->v}};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (!CHECK_OK(
                ggl_sched_set(s, in[i].name, in[i].data, in[i].size * (size_t)t->n, t->n, &err),
                &err))
            return NULL;
    return CHECK_OK(ggl_sched_run(s, t->n, NULL, 0, &err), &err) ? ggl_sched_output(s, 0) : NULL;
}

/* Adds the next token of a text: *to gets what is drawn for it. */
static void add(tokens *t, int text, int pos, uint64_t *seed) {
    const int i = t->n++;
    t->pos[i] = pos;
    t->slot[i] = text;
    t->end[i] = length[text];
    draw(seed, t->q[i][0], HEADS * D);
    draw(seed, t->k[i][0], STORE_HEADS * D);
    draw(seed, t->v[i][0], STORE_HEADS * E);
}

/* All texts, one after another or their tokens in turns. */
static void add_all(tokens *t, int turn, uint64_t *seed) {
    int next[TEXTS] = {0};
    t->n = 0;
    for (bool more = true; more;) {
        more = false;
        for (int text = 0; text < TEXTS; text++)
            for (int i = 0; i < turn && next[text] < length[text]; i++, more = true)
                add(t, text, next[text]++, seed);
    }
}

/* The tokens of one text, in its slot or another. */
static void take(tokens *to, const tokens *from, int text, int slot) {
    to->n = 0;
    for (int i = 0; i < from->n; i++) {
        if (from->slot[i] != text)
            continue;
        const int at = to->n++;
        to->pos[at] = from->pos[i];
        to->slot[at] = slot;
        to->end[at] = from->end[i];
        memcpy(to->q[at], from->q[i], sizeof *to->q);
        memcpy(to->k[at], from->k[i], sizeof *to->k);
        memcpy(to->v[at], from->v[i], sizeof *to->v);
    }
}

static void check_alone(ggl_sched *s, const tokens *all, const float *together) {
    enum { ROW = HEADS * E };
    static tokens one;
    for (int text = 0; text < TEXTS; text++) {
        take(&one, all, text, (text + 2) % TEXTS);
        const float *y = run(s, &one);
        for (int i = 0, at = 0; y && i < all->n; i++)
            if (all->slot[i] == text &&
                !CHECK_MSG(memcmp(y + ROW * at++, together + ROW * i, ROW * sizeof *y) == 0,
                           "text %d, token %d: other bits alone", text, at - 1))
                break;
    }
}

static void check(ggl_backend *b, const options *o, int turn, uint64_t seed) {
    static tokens all;
    static float together[MOST * HEADS * E];
    const ggl_graph_params gp = {
        .size = sizeof gp, .n_pos = 192, .n_batch = MOST, .n_slots = TEXTS};
    draw(&seed, table, sizeof table / sizeof *table);
    draw(&seed, bias, sizeof bias / sizeof *bias);
    draw(&seed, slope, HEADS);
    for (int i = 0; i < BIAS; i++)
        row[i] = (float)(test_random(&seed) % ROWS);
    add_all(&all, turn, &seed);
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_sched *s = sched_of(g, b, o);
    const float *y = s ? run(s, &all) : NULL;
    if (y) {
        memcpy(together, y, (size_t)all.n * HEADS * E * sizeof *y);
        check_alone(s, &all, together);
    }
    ggl_sched_free(s);
    ggl_graph_free(g);
}

TEST(bits_alone) {
    static const options form[] = {{.window = NAN, .cap = NAN},
                                   {.window = 40, .cap = NAN, .alibi = true},
                                   {.window = NAN, .cap = 3, .bias = true},
                                   {.window = 70, .cap = NAN, .rows = true}};
    ggl_backend *b = vulkan_open(NULL);
    const uint64_t seed = sample_seed();
    for (int i = (int)(seed % 2); b && i < 4; i += 2) /* the others on the next day */
        check(b, &form[i], (seed + (uint64_t)i) / 2 % 2 ? MOST : 1 + (int)(seed % 7),
              seed + (uint64_t)i);
    ggl_backend_close(b);
}
