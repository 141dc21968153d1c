/* Descriptions of pictures (tools/common/drawing.h): what is left out and cut, and allocations that fail. e2e.pictures looks
 * at whole pictures. */
#include "common/drawing.h"

#include <math.h>

#include "alloc_fail.h"
#include "test.h"

/* Writes a picture, and returns its text, to free(). */
static char *drawn(drawing *d) {
    ggl_error err = {0};
    const char *path = test_path("a.svg");
    FILE *out = fopen(path, "w");
    size_t n = 0;
    if (!CHECK(out))
        return NULL;
    CHECK_OK(drawing_write(d, out, &err), &err);
    fclose(out);
    drawing_fini(d);
    uint8_t *bytes = test_read_file(path, &n);
    char *text = bytes ? realloc(bytes, n + 1) : NULL;
    if (text)
        text[n] = '\0';
    return text;
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *s = text; s && (s = strstr(s, what)); s++)
        n++;
    return n;
}

/* Marks that no axis can show are left out, and a line goes on behind them; the legend has what is drawn. */
TEST(what_is_shown) {
    static const double y[] = {1, NAN, 3, INFINITY, -1, 1e300, 5};
    drawing d = {.title = "<a & b>"};
    drawing_legend(&d, 0, 1, "line");
    drawing_legend(&d, 1, 1, "none of it is shown");
    drawing_panel_add(&d, 100)->x.title = "step";
    for (int i = 0; i < 7; i++) {
        drawing_at(&d, DRAWING_LINE, 0, i, y[i])->begins |= i == 0;
        drawing_at(&d, DRAWING_POINT, 1, i, NAN);
    }
    drawing_panel_add(&d, 100)->y.log = true;
    drawing_at(&d, DRAWING_POINT, 0, 1, 0);
    drawing_at(&d, DRAWING_POINT, 0, 1, 10);
    char *svg = drawn(&d);
    CHECK_INT(count(svg, "class=\"line"), 1);
    CHECK_INT(count(svg, " L"), 2);
    CHECK_INT(count(svg, "<circle"), 1);
    CHECK_INT(count(svg, "none of it"), 0);
    CHECK_INT(count(svg, "&lt;a &amp; b&gt;"), 1);
    free(svg);
}

/* Of a text that is too long, both ends stay. */
TEST(long_texts) {
    char title[400];
    memset(title, 'x', sizeof title);
    memcpy(title, "first", 5);
    memcpy(title + sizeof title - 5, "last", 5);
    drawing d = {.title = title};
    drawing_panel_add(&d, 20)->x.high = 1;
    drawing_row(&d, title, "note");
    char *svg = drawn(&d);
    CHECK_INT(count(svg, ">first"), 2);
    CHECK_INT(count(svg, "last</text>"), 2);
    CHECK_INT(count(svg, "..."), 2);
    CHECK_INT(count(svg, "note"), 1);
    free(svg);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void describe_chart(drawing *d) {
    d->title = drawing_text(d, "%d", 1);
    drawing_note(d, "note");
    for (int k = 0; k < 3; k++) {
        drawing_legend(d, k, 1, "series");
        drawing_panel_add(d, 50)->title = drawing_text(d, "panel %d", k);
        drawing_name(d, DRAWING_BELOW, 1, "here");
        for (int i = 0; i < 9; i++)
            drawing_at(d, i % 2 ? DRAWING_LINE : DRAWING_POINT, k, i, i)->text =
                drawing_text(d, "%d", i);
        drawing_row(d, "row", "its note");
        drawing_span(d, DRAWING_BAR, k, 0, 1, 0, 1);
    }
}

static void describe_graph(drawing *d) {
    for (int k = 0; k < 2; k++) {
        drawing_block_add(d, &(drawing_block){.title = "block", .note = "note", .row = k});
        for (int i = 0; i < 5; i++) {
            drawing_node_add(d,
                             &(drawing_node){.title = drawing_text(d, "%d", i), .circle = i == 3});
            for (int from = 0; from < i; from += 2)
                drawing_edge_add(d, &(drawing_edge){from, i, "label", from == 0});
        }
    }
}

static bool draws(void *describe) {
    drawing d = {0};
    ggl_error err = {0};
    FILE *out = fopen(TEST_NOWHERE, "w");
    (*(void (**)(drawing *))describe)(&d);
    const ggl_status st = out ? drawing_write(&d, out, &err) : GGL_IO;
    CHECK(st == GGL_OK || st == GGL_NOMEM);
    drawing_fini(&d);
    fclose(out);
    return st == GGL_OK;
}

TEST(out_of_memory) {
    void (*chart)(drawing *) = describe_chart, (*graph)(drawing *) = describe_graph;
    CHECK(alloc_fail_each(draws, &chart) > 5);
    CHECK(alloc_fail_each(draws, &graph) > 20);
}

TEST(too_large) {
    enum { N = 500 };
    drawing d = {0};
    ggl_error err = {0};
    drawing_block_add(&d, &(drawing_block){.title = "all of all"});
    for (int i = 0; i < N; i++) {
        drawing_node_add(&d, &(drawing_node){.title = ""});
        for (int from = 0; from < i; from++)
            drawing_edge_add(&d, &(drawing_edge){from, i, "", false});
    }
    FILE *out = fopen(TEST_NOWHERE, "w");
    REQUIRE(out);
    CHECK_INT(drawing_write(&d, out, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "'all of all' would have ");
    CHECK_HAS(err.msg, "at most 100000");
    drawing_fini(&d);
    fclose(out);
}
