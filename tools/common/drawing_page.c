#include "drawing_page.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "char_width.h"

#define SANS "Inter,'Segoe UI',Helvetica,Arial,sans-serif"
#define MONO "'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"

/* --- texts ------------------------------------------------------------------------------------ */

typedef enum face { PLAIN, BOLD, FIXED } face;

static const struct {
    const char *class;
    double size;
    face face;
} font[] = {[PAGE_TITLE] = {"h", 17, BOLD},         [PAGE_BOLD] = {"b", 13.5, BOLD},
            [PAGE_TEXT] = {"t", 12.5, PLAIN},       [PAGE_NOTE] = {"n", 11.5, PLAIN},
            [PAGE_LABEL] = {"n halo", 11.5, PLAIN}, [PAGE_CODE] = {"f", 11.5, FIXED},
            [PAGE_SHAPE] = {"f halo", 11.5, FIXED}, [PAGE_CORNER] = {"o", 10, PLAIN}};

/* True if XML allows a character. */
static bool is_allowed(uint32_t c) {
    return c >= ' ' && c != 0x7f && c != 0xfffe && c != 0xffff;
}

static void put_n(FILE *out, const char *s, size_t left) {
    static const char *const escape[] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"};
    for (size_t n; left > 0; left -= n, s += n) {
        uint32_t c;
        char text[4];
        n = char_read(s, left, &c);
        if (c < sizeof escape / sizeof *escape && escape[c])
            fputs(escape[c], out);
        else if (is_allowed(c))
            fwrite(text, 1, char_write(c, text), out);
    }
}

void page_put(FILE *out, const char *s) {
    put_n(out, s, strlen(s));
}

/* Thousandths of the size, from the space to the tilde, in DejaVu Sans. */
static const uint16_t widths[] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
enum { FIXED_WIDTH = 602, WIDE = 1000, OTHER = 838 };

/* Reads a character, adds its bytes to *at, and returns its width. */
static double char_part(page_font f, const char *s, size_t n, size_t *at) {
    uint32_t c;
    *at += char_read(s + *at, n - *at, &c);
    const int columns = is_allowed(c) ? char_width(c) : 0;
    double part;
    if (columns != 1 || c >= 0x2e80) /* from another font, for East Asian writing or U+FFFD */
        part = columns == 0 ? 0 : WIDE;
    else if (font[f].face == FIXED)
        part = FIXED_WIDTH;
    else
        part = (c < ' ' + sizeof widths / sizeof *widths ? widths[c - ' '] : OTHER) *
               (font[f].face == BOLD ? 1.11 : 1);
    return part * 1e-3 * font[f].size;
}

double page_text_width(page_font f, const char *s) {
    double sum = 0;
    for (size_t at = 0, n = strlen(s); at < n;)
        sum += char_part(f, s, n, &at);
    return sum;
}

void page_text(FILE *out, page_font f, page_anchor a, double x, double y, double width,
               const char *s) {
    static const char *const anchors[] = {"", " m", " e"};
    const size_t n = strlen(s);
    const double all = page_text_width(f, s), half = (width - page_text_width(f, "...")) / 2;
    size_t head = 0, tail = 0, next = 0; /* what is kept: before `head`, and from `tail` on */
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s%s\">", x, y, font[f].class, anchors[a]);
    if (all > width + 0.01) { /* sums of the same widths may differ */
        for (double sum = 0; next < n && (sum += char_part(f, s, n, &next)) <= half;)
            head = next;
        for (double sum = 0; tail < n && all - sum > half;)
            sum += char_part(f, s, n, &tail);
        put_n(out, s, head);
        fputs("...", out);
    }
    page_put(out, s + tail);
    fputs("</text>\n", out);
}

/* Writes a note in lines of that width, the first at the baseline y. Returns the number of lines. out NULL: only that. */
static int wrapped(FILE *out, double y, double width, const char *text) {
    enum { LINE = 16 };
    int n = 0;
    while (*text) {
        size_t end = 0, next = 0; /* as many words as fit; at least one */
        char line[512];
        while (text[next]) {
            next += 1 + strcspn(text + next + 1, " ");
            snprintf(line, sizeof line, "%.*s", (int)next, text);
            if (end > 0 && (next >= sizeof line || page_text_width(PAGE_NOTE, line) > width))
                break;
            end = next;
        }
        snprintf(line, sizeof line, "%.*s", (int)end, text);
        if (out)
            page_text(out, PAGE_NOTE, PAGE_START, PAGE_MARGIN, y + n * LINE, width, line);
        text += end;
        text += strspn(text, " ");
        n++;
    }
    return n;
}

/* --- colors ----------------------------------------------------------------------------------- */

/* The colors of series differ in lightness, too, and are readable on either background. */
static const char *const light[DRAWING_COLORS] = {"1f6fb5", "c8501e", "2b8a3e", "8e44ad",
                                                  "b0860b", "0f8b8d", "c2255c", "6b7480"};
static const char *const dark[DRAWING_COLORS] = {"5aa9e6", "f2895c", "63c174", "c08ae0",
                                                 "e0b93f", "45c1c3", "f06595", "a7b0bc"};

static const char style[] =
    "text{font-family:" SANS ";fill:#1f2733}.bg{fill:#ffffff}"
    ".h{font-size:17px;font-weight:600}.t{font-size:12.5px}.b{font-size:13.5px;font-weight:600}"
    ".n{font-size:11.5px;fill:#5d6773}.o{font-size:10px;fill:#717b87}"
    ".f{font-size:11.5px;fill:#4d5763;font-family:" MONO "}"
    ".m{text-anchor:middle}.e{text-anchor:end}"
    ".halo{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}"
    ".axes{fill:none;stroke:#8b95a1}.g{stroke:#e3e6ea;fill:none}.ink{stroke:#1f2733;fill:none}"
    ".roof{fill:none;stroke:#5d6773;stroke-width:1.6}.flat{stroke-dasharray:2 4}"
    ".line{fill:none;stroke-width:1.8}.dash{stroke-dasharray:5 4}.hollow{fill:#ffffff}"
    ".frame{fill:#ffffff;stroke:#dcdfe4;stroke-width:1.2}.node{fill-opacity:0.15;stroke-width:1.3}"
    ".edge{fill:none;stroke:#a3acb8;stroke-width:1.5}.stream{fill:none;stroke:#4a90c2;stroke-width:"
    "2.6}"
    ".tip{fill:#a3acb8}.plain{fill:#ffffff;stroke:#7b8794}";
static const char style_dark[] =
    "text{fill:#e6e9ee}.bg,.hollow,.frame,.plain{fill:#15181d}.n,.o{fill:#a7b0bc}.f{fill:#c3cad3}"
    ".halo{stroke:#15181d}.axes{stroke:#6b7683}.g,.frame{stroke:#343b45}.ink{stroke:#e6e9ee}"
    ".roof{stroke:#a7b0bc}.edge{stroke:#687281}.tip{fill:#687281}.plain{stroke:#8f9aa8}";
static const char arrows[] =
    "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 1L6 4L0 7z\" class=\"tip\"/></marker>"
    "<marker id=\"b\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" markerWidth=\"5\" "
    "markerHeight=\"5\" orient=\"auto\"><path d=\"M0 1L6 4L0 7z\" "
    "fill=\"#4a90c2\"/></marker></defs>\n";

static void put_colors(FILE *out, const char *const color[DRAWING_COLORS]) {
    for (int i = 0; i < DRAWING_COLORS; i++)
        fprintf(out, ".c%d{fill:#%s}.s%d{stroke:#%s}", i, color[i], i, color[i]);
}

static void put_style(FILE *out) {
    fprintf(out, "<style>%s", style);
    put_colors(out, light);
    fprintf(out, "@media(prefers-color-scheme:dark){%s", style_dark);
    put_colors(out, dark);
    fputs("}</style>\n", out);
}

/* --- the head --------------------------------------------------------------------------------- */

static const drawing_entry *entry_of(const drawing *d, int series) {
    for (size_t i = 0; i < d->n_legends; i++)
        if (d->legend[i].series == series)
            return &d->legend[i];
    return NULL;
}

void page_put_series(FILE *out, const drawing *d, int series) {
    if (series >= 0 && entry_of(d, series))
        fprintf(out, " data-series=\"%d\"", series);
}

static bool is_used(const drawing *d, int series) {
    bool used = false;
    for (size_t i = 0; i < d->n_marks && !used; i++)
        used = d->mark[i].series == series;
    for (size_t i = 0; i < d->n_nodes && !used; i++)
        used = d->node[i].series == series;
    return used;
}

/* Writes the legend in lines, from the baseline y on; returns the baseline below it. out NULL: only that. */
static double put_legend(FILE *out, const drawing *d, double y, double width) {
    enum { ICON = 12, LINE = 20, GAP = 18 };
    double x = PAGE_MARGIN;
    for (size_t i = 0; i < d->n_legends; i++) {
        const drawing_entry *e = &d->legend[i];
        if (e->series == DRAWING_BARE || !is_used(d, e->series))
            continue;
        const double room = width - 2 * PAGE_MARGIN - ICON - 6;
        const double w = ICON + 6 + fmin(room, page_text_width(PAGE_TEXT, e->name));
        if (x > PAGE_MARGIN && x + w > width - PAGE_MARGIN) {
            x = PAGE_MARGIN;
            y += LINE;
        }
        if (out) {
            fputs("<g class=\"legend\"", out);
            page_put_series(out, d, e->series);
            fprintf(out,
                    "><rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"3\" "
                    "class=\"c%d s%d\" fill-opacity=\"%.3f\"/>\n",
                    x, y - 10, ICON, ICON, e->series % DRAWING_COLORS, e->series % DRAWING_COLORS,
                    e->shade);
            page_text(out, PAGE_TEXT, PAGE_START, x + ICON + 6, y, room, e->name);
            fputs("</g>\n", out);
        }
        x += w + GAP;
    }
    return x > PAGE_MARGIN ? y + LINE : y;
}

double page_head(FILE *out, const drawing *d, double width) {
    const double room = width - 2 * PAGE_MARGIN;
    if (out)
        page_text(out, PAGE_TITLE, PAGE_START, PAGE_MARGIN, 32, room, d->title ? d->title : "");
    double y = put_legend(out, d, 56, width);
    for (size_t i = 0; i < d->n_legends; i++)
        if (d->legend[i].series == DRAWING_BARE)
            y += 16 * wrapped(out, y, room, d->legend[i].name);
    return y - 6;
}

void page_begin(FILE *out, const drawing *d, double width, double height) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
            "width=\"%.0f\" height=\"%.0f\">\n",
            width, height, width, height);
    put_style(out);
    if (d->n_blocks > 0)
        fputs(arrows, out);
    fputs("<rect width=\"100%\" height=\"100%\" class=\"bg\"/>\n", out);
    page_head(out, d, width);
}

void page_end(FILE *out) {
    fputs("</svg>\n", out);
}
