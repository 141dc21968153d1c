/* The table of rows that stand for tokens: what was added is found by its digest and by its ids, which never overlap; rows that somebody holds stay, and of
 * the others those that were not asked for the longest go first. Seeded orders of calls, against a list. */
#include "llm/internal/media.h"

#include <stdlib.h>
#include <string.h>

#include "seed.h"
#include "test.h"

enum { N_ROW = 3 };

static void digest_of(int k, uint32_t begin, uint8_t id[LLM_MEDIA_ID]) {
    memset(id, 0, LLM_MEDIA_ID);
    memcpy(id, &begin, 4);
    memcpy(id + 4, &k, sizeof k);
}

static ggl_status add(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int64_t n, float value,
                      const int32_t *place, int32_t *first, ggl_error *err) {
    float *row = malloc((size_t)(n * N_ROW) * sizeof *row);
    for (int64_t i = 0; i < n * N_ROW; i++)
        row[i] = value + (float)(i / N_ROW);
    const llm_media_rows rows = {
        .row = row, .n = n, .n_row = N_ROW, .place = place, .n_pos = n + 2};
    const ggl_status st = llm_media_add(m, id, &rows, first, err);
    free(row);
    return st;
}

/* Rows may come after their ids; once nobody holds them, they are gone, as nobody finds them again. */
TEST(rows_that_come_later) {
    llm_media *m;
    ggl_error err = {0};
    uint8_t id[LLM_MEDIA_ID];
    const float row[2 * N_ROW] = {1, 2, 3, 4, 5, 6};
    const llm_media_rows rows = {.n = 5, .n_row = N_ROW, .n_pos = 5};
    int32_t first, again;
    int64_t n;
    llm_media_row r;
    REQUIRE_OK(llm_media_new(&m, 1 << 20, &err), &err);
    digest_of(1, 77, id);
    REQUIRE_OK(llm_media_add(m, id, &rows, &first, &err), &err);
    llm_media_fill(m, first, 3, row, 2);
    REQUIRE(llm_media_get(m, first - 4, &r));
    CHECK(r.row[0] == 4 && r.row[N_ROW - 1] == 6 && r.i == 4 && r.n == 5);
    REQUIRE(llm_media_get(m, first, &r));
    CHECK(r.row[0] == 0);
    CHECK(llm_media_find(m, id, &again, &n) && again == first && n == 5);
    llm_media_release(m, first);
    CHECK(llm_media_get(m, first, &r));
    llm_media_release(m, first);
    CHECK(!llm_media_get(m, first, &r) && !llm_media_find(m, id, &again, &n));
    llm_media_free(m);
}

TEST(rows_by_id) {
    llm_media *m;
    ggl_error err = {0};
    uint8_t id[LLM_MEDIA_ID];
    const int32_t place[] = {0, 4, 5, 0, 6, 7};
    int32_t first, again;
    int64_t n;
    llm_media_row r;
    REQUIRE_OK(llm_media_new(&m, 1 << 20, &err), &err);
    digest_of(1, 77, id);
    REQUIRE_OK(add(m, id, 2, 10, place, &first, &err), &err);
    CHECK_INT(first, -78); /* the digest's first 31 bits say so */
    REQUIRE(llm_media_get(m, first - 1, &r));
    CHECK(r.row[0] == 11 && r.n_row == N_ROW && r.i == 1 && r.n == 2 && r.n_pos == 4);
    CHECK(r.has_place && r.place[0] == 0 && r.place[1] == 6 && r.place[2] == 7 && r.first == first);
    CHECK(!llm_media_get(m, first + 1, &r) && !llm_media_get(m, first - 2, &r));
    CHECK(!llm_media_get(m, 5, &r) && !llm_media_get(NULL, first, &r));
    REQUIRE_OK(add(m, id, 2, 10, place, &again, &err), &err); /* the same contents */
    CHECK_INT(again, first);
    CHECK(llm_media_find(m, id, &again, &n) && again == first && n == 2);
    digest_of(2, 77, id); /* other contents, the same beginning of the digest */
    CHECK(!llm_media_find(m, id, &again, &n));
    REQUIRE_OK(add(m, id, 3, 20, NULL, &again, &err), &err);
    CHECK(again != first);
    REQUIRE(llm_media_get(m, again - 2, &r));
    CHECK(r.row[0] == 22 && !r.has_place);
    digest_of(3, 0x7fffffff, id); /* there is no room below the lowest id */
    REQUIRE_OK(add(m, id, 5, 30, NULL, &again, &err), &err);
    CHECK(again < 0 && llm_media_get(m, again - 4, &r) && r.row[0] == 34);
    digest_of(4, 0, id);
    CHECK_INT(llm_media_add(m, id, &(llm_media_rows){.n = 0, .n_row = 1}, &again, &err), GGL_LIMIT);
    llm_media_free(m);
}

/* --- places in a text --------------------------------------------------------------------------- */

typedef struct element {
    int i;                      /* row of a picture, APART or END of it; TOKEN */
    int32_t want[LLM_N_PLACES]; /* t, y, x, line, column, picture */
} element;

enum { TOKEN = -1, APART = 100, END = 101, TURN = 102 };

/* A picture of two lines and three columns, which may have rows before it, behind it and behind its lines; as a text, its rows take three places. */
static llm_media_row row_of(int i, int32_t first) {
    llm_media_row r = {.i = i, .n = 6, .n_pos = 3, .first = first, .has_place = true};
    if (i == TOKEN || i == TURN) /* a token, or a row of a sound */
        return (llm_media_row){.n = 1, .n_pos = 1, .first = i == TURN ? first : 0};
    r.place[0] = i == APART ? LLM_MEDIA_APART : i == END ? LLM_MEDIA_ENDS_LINE : 0;
    r.place[1] = i < APART ? i / 3 : 0;
    r.place[2] = i < APART ? i % 3 : 0;
    return r;
}

static void check_places(const element *e, int n, const int32_t *first) {
    llm_places p = {0};
    for (int pos = 0; pos < n; pos++) {
        int32_t got[LLM_N_PLACES];
        const llm_media_row row = row_of(e[pos].i, first[pos]);
        llm_places_next(&p, pos, &row, got);
        for (int k = 0; k < LLM_N_PLACES; k++)
            CHECK_MSG(got[k] == e[pos].want[k], "place %d of element %d is %d, not %d", k, pos,
                      (int)got[k], (int)e[pos].want[k]);
    }
}

/* Rows count from their picture's beginning, and what follows is behind its longer side. The same picture may follow itself. */
TEST(places_of_pictures) {
    static const element e[] = {
        {TOKEN, {0, 0, 0, 0, 0, 0}}, {0, {1, 1, 1, 0, 0, 0}},        {1, {1, 1, 2, 0, 1, 0}},
        {2, {1, 1, 3, 0, 2, 0}},     {3, {1, 2, 1, 1, 0, 0}},        {4, {1, 2, 2, 1, 1, 0}},
        {5, {1, 2, 3, 1, 2, 0}},     {0, {4, 4, 4, 0, 0, 1}},        {1, {4, 4, 5, 0, 1, 1}},
        {2, {4, 4, 6, 0, 2, 1}},     {3, {4, 5, 4, 1, 0, 1}},        {4, {4, 5, 5, 1, 1, 1}},
        {5, {4, 5, 6, 1, 2, 1}},     {TOKEN, {7, 7, 7, 13, 13, 13}}, {TURN, {8, 8, 8, 14, 14, 14}},
        {0, {9, 9, 9, 0, 0, 2}},
    };
    static const int32_t first[] = {0, -9, -9, -9, -9, -9, -9, -9, -9, -9, -9, -9, -9, 0, -40, -20};
    check_places(e, sizeof e / sizeof *e, first);
}

/* Rows at the ends of lines are a column behind them; those around a picture stand where a word would. */
TEST(places_of_rows_that_texts_name) {
    static const element e[] = {
        {END, {0, 0, 0, 0, 0, 0}}, /* no line of its picture stands before it */
        {APART, {1, 1, 1, 1, 1, 1}},    {0, {2, 2, 2, 0, 0, 0}},        {1, {2, 2, 3, 0, 1, 0}},
        {2, {2, 2, 4, 0, 2, 0}},        {END, {2, 2, 5, 0, 3, 0}},      {3, {2, 3, 2, 1, 0, 0}},
        {4, {2, 3, 3, 1, 1, 0}},        {5, {2, 3, 4, 1, 2, 0}},        {END, {2, 3, 5, 1, 3, 0}},
        {APART, {6, 6, 6, 10, 10, 10}}, {TOKEN, {7, 7, 7, 11, 11, 11}}, {0, {8, 8, 8, 0, 0, 1}},
    };
    static const int32_t first[] = {-9, -9, -9, -9, -9, -9, -9, -9, -9, -9, -9, 0, -9};
    check_places(e, sizeof e / sizeof *e, first);
}

/* What a cache still has of rows that were dropped is not taken for others, and is for them when they are back. */
TEST(ids_of_dropped_rows) {
    llm_media *m;
    ggl_error err = {0};
    uint8_t a[LLM_MEDIA_ID], b[LLM_MEDIA_ID];
    int32_t first, other, again;
    llm_media_row r;
    REQUIRE_OK(llm_media_new(&m, 0, &err), &err);
    digest_of(1, 77, a);
    digest_of(2, 78, b); /* their ids would overlap */
    REQUIRE_OK(add(m, a, 4, 10, NULL, &first, &err), &err);
    llm_media_release(m, first);
    llm_media_release(m, first);
    CHECK(!llm_media_get(m, first, &r));
    REQUIRE_OK(add(m, b, 4, 20, NULL, &other, &err), &err);
    CHECK_MSG(other + 4 <= first || first + 4 <= other, "%d, and %d before", (int)other,
              (int)first);
    REQUIRE_OK(add(m, a, 4, 30, NULL, &again, &err), &err);
    CHECK_INT(again, first);
    CHECK(llm_media_get(m, again - 3, &r) && r.row[0] == 33);
    for (int k = 3; k < 9000; k++) { /* not for ever: memory has an end */
        digest_of(k, 1000 * (uint32_t)k, b);
        REQUIRE_OK(add(m, b, 1, 1, NULL, &other, &err), &err);
        llm_media_release(m, other);
    }
    llm_media_free(m);
}

/* --- seeded orders ---------------------------------------------------------------------------- */

enum { PICTURES = 24, STEPS = 4000, MOST = 700 };

typedef struct picture {
    uint8_t id[LLM_MEDIA_ID];
    int64_t n;
    int32_t first;
    int held;
    int used; /* step of the last call; 0: it is not there */
} picture;

static size_t bytes(const picture *p) {
    return (size_t)(p->n * N_ROW) * sizeof(float);
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Which of them are there after a release, by the rule of the header. */
static void forget(picture *p) {
    for (;;) {
        size_t sum = 0;
        picture *oldest = NULL;
        for (int k = 0; k < PICTURES; k++)
            if (p[k].used && !p[k].held) {
                sum += bytes(&p[k]);
                oldest = !oldest || p[k].used < oldest->used ? &p[k] : oldest;
            }
        if (sum <= MOST)
            return;
        oldest->used = 0;
    }
}

static void check_all(const llm_media *m, const picture *p) {
    llm_media_row r;
    for (int k = 0; k < PICTURES; k++)
        for (int64_t i = 0; p[k].used && i < p[k].n; i++)
            CHECK(llm_media_get(m, (int32_t)(p[k].first - i), &r) && r.i == i && r.n == p[k].n &&
                  r.row[0] == (float)(1000 * k + i));
}

/* Ids that a file names are kept for rows that come later, and none else gets them. */
TEST(ids_that_are_expected) {
    llm_media *m;
    ggl_error err = {0};
    uint8_t id[LLM_MEDIA_ID], found[LLM_MEDIA_ID];
    int32_t first, again, whose;
    int64_t n;
    llm_media_row r;
    REQUIRE_OK(llm_media_new(&m, 1 << 20, &err), &err);
    digest_of(1, 77, id);
    REQUIRE_OK(llm_media_expect(m, id, 4, &first, &err), &err);
    CHECK(first == -78 && !llm_media_get(m, first, &r) && !llm_media_find(m, id, &again, &n));
    REQUIRE(llm_media_whose(m, first - 3, found, &whose, &n));
    CHECK(whose == first && n == 4 && memcmp(found, id, sizeof id) == 0);
    CHECK(!llm_media_whose(m, first - 4, found, &whose, &n) &&
          !llm_media_whose(m, 3, found, &whose, &n));
    REQUIRE_OK(llm_media_expect(m, id, 4, &again, &err), &err);
    CHECK_INT(again, first);
    CHECK_INT(llm_media_expect(m, id, 5, &again, &err), GGL_FORMAT);
    digest_of(2, 77, id);
    REQUIRE_OK(add(m, id, 3, 20, NULL, &again, &err), &err);
    CHECK(again != first && (again < first - 3 || again - 2 > first));
    CHECK_INT(llm_media_expect(m, id, 0, &again, &err), GGL_FORMAT);
    digest_of(1, 77, id);
    REQUIRE_OK(add(m, id, 4, 10, NULL, &again, &err), &err);
    CHECK(again == first && llm_media_get(m, first - 3, &r) && r.row[0] == 13);
    REQUIRE_OK(llm_media_expect(m, id, 4, &again, &err), &err); /* they are there */
    CHECK(again == first && llm_media_get(m, first, &r));
    digest_of(5, 5, id);
    CHECK_INT(llm_media_expect(m, id, 0, &again, &err), GGL_FORMAT);
    llm_media_free(m);
}

TEST(seeded_orders) {
    llm_media *m;
    ggl_error err = {0};
    picture p[PICTURES] = {0};
    uint64_t state = sample_seed();
    REQUIRE_OK(llm_media_new(&m, MOST, &err), &err);
    for (int k = 0; k < PICTURES; k++) { /* many begin near each other, and near both ends */
        const uint32_t near[] = {0, 5, 9, 0x7ffffffe, 0x7ffffff0};
        digest_of(k, near[k % 5], p[k].id);
        p[k].n = 1 + k % 7;
    }
    for (int step = 1; step <= STEPS; step++) {
        const int k = (int)(next(&state) % PICTURES);
        int32_t first;
        int64_t n;
        switch (next(&state) % 4) {
        case 0:
            REQUIRE_OK(add(m, p[k].id, p[k].n, 1000 * (float)k, NULL, &first, &err), &err);
            CHECK(!p[k].used || first == p[k].first);
            p[k].first = first;
            p[k].held++;
            p[k].used = step;
            break;
        case 1:
            if (CHECK(llm_media_find(m, p[k].id, &first, &n) == (p[k].used > 0)) && p[k].used) {
                CHECK(first == p[k].first && n == p[k].n);
                p[k].held++;
                p[k].used = step;
            }
            break;
        default:
            if (!p[k].held)
                break;
            llm_media_release(m, p[k].first);
            if (--p[k].held == 0)
                forget(p);
        }
        if (step % 16 == 0)
            check_all(m, p);
    }
    llm_media_free(m);
}
