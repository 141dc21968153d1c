/* What the charts of the tools share: the head and the style for light and dark pages, texts that
 * fit, steps of axes, legends. All sizes are in the picture's units.
 *
 *     chart_open(out, 760, 400, "Tokens per second");
 *     chart_text(out, 80, 60, CHART_END, "n", "%g", 12.5);
 *     chart_close(out);
 *
 * Classes of shapes: c0 .. c7 fill, s0 .. s7 draw a series' color; "hollow" comes with s0 .. s7; "axes"
 * is the frame of a plot, "g" a line of its grid, "ink" a thin line. Of texts: "t" is plain, "n" a small
 * note, "b" bold. */
#ifndef TOOLS_CHART_H
#define TOOLS_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/status.h"

enum { CHART_SERIES = 8, CHART_MARGIN = 20, CHART_TOP = 56, CHART_LINE = 18, CHART_NOTE_LINE = 16 };

#define CHART_SIZE 12.5 /* of the font of texts and.. */
#define CHART_NOTE 11.5 /* ..of notes */

typedef enum chart_anchor { CHART_START, CHART_MIDDLE, CHART_END } chart_anchor;

/* Begins a picture; everything below CHART_TOP is free. The title is cut to fit. */
void chart_open(FILE *out, double width, double height, const char *title);
void chart_close(FILE *out);

/* Prints a note if the file has the suffix of another kind of picture: what is written is SVG. */
void chart_note_suffix(const char *tool, const char *flag, const char *path);

/* Writes a text at the baseline y. */
void chart_text(FILE *out, double x, double y, chart_anchor anchor, const char *class,
                const char *fmt, ...) GGL_PRINTF(6, 7);
/* Writes a text that reads upwards, centered at (x, y). */
void chart_text_up(FILE *out, double x, double y, const char *text);
/* Writes a note in lines of that width, the first at the baseline y; nothing if out is NULL. Returns
 * the number of lines. */
int chart_note(FILE *out, double x, double y, double width, const char *text);

/* True if a number can be drawn: 0, or within what axes can count without overflow. No measurement
 * is outside that; a damaged clock's can be, and is left out. */
bool chart_shows(double x);

/* Returns 1, 2 or 5 times a power of ten, so that about n steps reach top. 1 if top is not
 * positive or cannot be drawn. */
double chart_step(double top, int n);

/* A legend in lines of equal entries: the series by index, each a dot and its name. */
typedef struct chart_legend {
    double x, y, left, right; /* where the next entry begins; the lines' ends */
} chart_legend;

/* Writes the entry of a series; names longer than a line are cut. Writes nothing if out is NULL,
 * to measure. */
void chart_legend_add(FILE *out, chart_legend *l, int series, const char *name);

#endif
