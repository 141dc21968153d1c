/* What all pictures share: texts that fit, the head with its legend, and the bodies, of which a picture has one. Sizes
 * are in pixels. */
#ifndef TOOLS_DRAWING_PAGE_H
#define TOOLS_DRAWING_PAGE_H

#include "drawing.h"

enum { PAGE_MARGIN = 20, PAGE_WIDTH = 760 };

typedef enum page_font {
    PAGE_TITLE,
    PAGE_BOLD,
    PAGE_TEXT,
    PAGE_NOTE,
    PAGE_LABEL, /* a note with a halo, in front of lines */
    PAGE_CODE,
    PAGE_SHAPE, /* code with a halo */
    PAGE_CORNER
} page_font;

typedef enum page_anchor { PAGE_START, PAGE_MIDDLE, PAGE_END } page_anchor;

/* Writes text, or a value of an attribute, with XML's special characters escaped, without control characters; bytes
 * that are not UTF-8 become U+FFFD. */
void page_put(FILE *out, const char *s);
/* Returns the width of a text in the widest of the usual fonts: what has this room does not touch its neighbour,
 * whatever font the reader's machine has. */
double page_text_width(page_font f, const char *s);
/* Writes a text at the baseline y, cut in its middle if it is wider than `width`. */
void page_text(FILE *out, page_font f, page_anchor a, double x, double y, double width,
               const char *s);
/* Writes ` data-series="N"` if the legend has that series. */
void page_put_series(FILE *out, const drawing *d, int series);

/* Writes what stands above a body, with the legend; returns where the body begins. out NULL: only that. */
double page_head(FILE *out, const drawing *d, double width);
/* Begin and end a picture: what is before and in the head, and behind the body. */
void page_begin(FILE *out, const drawing *d, double width, double height);
void page_end(FILE *out);

/* A body: drawn below `top` in a page of that width. */
typedef struct page_body {
    double width, height; /* what it needs; width with the margins */
    void (*draw)(FILE *out, const struct page_body *b, double width, double top);
    const drawing *d;
    void *state;                       /* for `draw`; ggl_free frees it */
    void (*fini)(struct page_body *b); /* NULL: nothing else */
} page_body;

GGL_NODISCARD ggl_status chart_body(page_body *b, const drawing *d, ggl_error *err);
GGL_NODISCARD ggl_status graph_body(page_body *b, const drawing *d, ggl_error *err);

#endif
