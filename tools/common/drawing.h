/* Pictures that the tools draw: charts, and graphs of nodes. A program fills a description with what it has to
 * show; what axes, ticks, legends and colors look like, what is cut to fit, and how the file is written is decided
 * here. A picture is one SVG file without scripts and fonts, for light and dark pages.
 *
 *     drawing d = {.title = "Losses"};
 *     drawing_legend(&d, 0, 1, "loss of the steps");
 *     drawing_panel_add(&d, 260)->x.title = "step";
 *     for (int i = 0; i < n; i++)
 *         drawing_at(&d, DRAWING_LINE, 0, i, loss[i]);
 *     return drawing_save(&d, "llm-train", "--svg", path);
 *
 * Texts are borrowed until the picture is written; drawing_text makes some. What adds something never fails: if there
 * is no memory, it returns something that is not drawn, and writing the picture fails. */
#ifndef TOOLS_DRAWING_H
#define TOOLS_DRAWING_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/internal/alloc.h"

enum { DRAWING_COLORS = 8, DRAWING_LINES = 5 };

/* Series are counted from 0 and have the colors of s % DRAWING_COLORS; instead of a series: */
enum { DRAWING_INK = -1 /* the color of text and lines */, DRAWING_BARE = -2 /* no frame */ };

/* --- charts: panels below each other ---------------------------------------------------------- */

typedef struct drawing_axis {
    const char *title;  /* NULL: none */
    double low, high;   /* what is shown; equal: what the marks, or the names below, need */
    bool from_zero;     /* if they are equal: from 0 on */
    bool log;           /* what is not positive is left out */
    bool whole;         /* it counts things: ticks have no fractions, bars have gaps */
    double least, most; /* of x: the width of a unit, in pixels; 0: any */
} drawing_axis;

typedef struct drawing_panel {
    const char *title, *note; /* above the plot, on the left and on the right; NULL: none */
    drawing_axis x, y;
    double height;                               /* of the plot; of a row, if there are rows */
    size_t mark, n_marks, tick, n_ticks, n_rows; /* set here */
} drawing_panel;

typedef enum drawing_kind {
    DRAWING_POINT,
    DRAWING_LINE,   /* from the mark before it, unless it begins */
    DRAWING_BAND,   /* likewise, from y to y1 */
    DRAWING_BAR,    /* from x, y to x1, y1 */
    DRAWING_WHISKER /* from x to x1, at y */
} drawing_kind;

typedef struct drawing_mark {
    drawing_kind kind;
    int series;
    double x, x1, y, y1;
    double shade; /* how much of its color a bar has, from 0 to 1; 0: all */
    bool begins;  /* does not go on with the line or band before it */
    bool dashed, hollow;
    const char *text; /* beside a point, or in a bar, if there is room; NULL: none */
    const char *tip;  /* shown where the pointer is; NULL: none */
    const char *
        limit; /* of a line: the name of the limit that it is; of a point: that it is below; NULL: none */
} drawing_mark;

/* A name at a place of an axis. Those below and on the left are its ticks. */
typedef enum drawing_side { DRAWING_BELOW, DRAWING_LEFT, DRAWING_RIGHT } drawing_side;
typedef struct drawing_tick {
    drawing_side side;
    double at;
    const char *name;
} drawing_tick;

/* --- graphs: blocks of nodes, in rows ---------------------------------------------------------- */

typedef struct drawing_node {
    int series;                                             /* or DRAWING_INK, DRAWING_BARE */
    const char *title, *corner, *tip, *line[DRAWING_LINES]; /* NULL, but for the title: none */
    bool dashed;
    bool circle; /* only its title is shown */
    bool last;   /* it stands below all others of its block */
} drawing_node;

typedef struct drawing_edge {
    int from, to;      /* nodes of the block, by their number in it; from < to */
    const char *label; /* "": none */
    bool strong;       /* drawn straight, if possible */
} drawing_edge;

typedef struct drawing_block {
    const char *title, *note;
    int row;      /* blocks of one row follow each other, and stand side by side */
    bool several; /* it stands for several, which are shown as sheets behind it */
    size_t node, n_nodes, edge, n_edges; /* set here */
} drawing_block;

/* --- a picture --------------------------------------------------------------------------------- */

typedef struct drawing_entry { /* of the legend, or a note (series DRAWING_BARE) */
    int series;
    double shade;
    const char *name;
} drawing_entry;

typedef struct drawing { /* all zeros: an empty picture */
    const char *title;
    drawing_entry *legend;
    drawing_panel *panel;
    drawing_mark *mark;
    drawing_tick *tick;
    drawing_block *block;
    drawing_node *node;
    drawing_edge *edge;
    size_t n_legends, n_panels, n_marks, n_ticks, n_blocks, n_nodes, n_edges;
    size_t cap_legends, cap_panels, cap_marks, cap_ticks, cap_blocks, cap_nodes, cap_edges;
    ggl_arena texts;
    drawing_panel no_panel; /* where there is no memory.. */
    drawing_mark no_mark;   /* ..or what is not shown */
    bool failed;
} drawing;

/* Returns a text that is kept until the description is freed. */
const char *drawing_text(drawing *d, const char *fmt, ...) GGL_PRINTF(2, 3);
/* Adds a sentence below the legend. */
void drawing_note(drawing *d, const char *text);
/* Names a series; it is in the legend if anything has its color. shade: as of its marks, 1: all. */
void drawing_legend(drawing *d, int series, double shade, const char *name);

/* The members of what is returned may be set until the next one is added. */
drawing_panel *drawing_panel_add(drawing *d, double height);
/* The following add to the last panel. Marks at places that are not finite, or farther from 1 than 10^60, are left
 * out. */
drawing_mark *drawing_at(drawing *d, drawing_kind kind, int series, double x, double y);
drawing_mark *drawing_span(drawing *d, drawing_kind kind, int series, double x, double x1, double y,
                           double y1);
/* Adds a row below those before it: the k-th, from 0 on, is from k to k + 1 on the y axis. note: on the right. */
void drawing_row(drawing *d, const char *name, const char *note);
void drawing_name(drawing *d, drawing_side side, double at, const char *name);

void drawing_block_add(drawing *d, const drawing_block *b);
/* The following add to the last block. Edges follow each other in the order of `to`. */
void drawing_node_add(drawing *d, const drawing_node *n);
void drawing_edge_add(drawing *d, const drawing_edge *e);

/* True if a number can be shown: 0, or from 10^-60 to 10^60. */
bool drawing_shows(double x);

/* Writes the picture. GGL_NOMEM. GGL_LIMIT: a block has more than 100000 nodes and bends of edges. Nothing is
 * written after an error. */
GGL_NODISCARD ggl_status drawing_write(const drawing *d, FILE *out, ggl_error *err);
/* Writes it to a file, and frees the description. Notes if the file's name says that it is another kind of picture.
 * Returns 0; 1 after a message of the tool, which begins with the flag that named the file. */
int drawing_save(drawing *d, const char *tool, const char *flag, const char *path);
void drawing_fini(drawing *d);

#endif
