#include "common/chart.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/report.h"
#include "common/svg_text.h"
#include "ggl/internal/text.h"

enum { DOT = 16, ENTRY_GAP = 18 };

/* The colors of series differ in lightness, too, and are readable on either background. */
static const char style[] =
    "text{font-family:" SVG_FONT ";fill:#1f2733}.bg{fill:#ffffff}"
    ".h{font-size:17px;font-weight:600}.t{font-size:12.5px}.b{font-size:13.5px;font-weight:600}"
    ".n{font-size:11.5px;fill:#5d6773}.m{text-anchor:middle}.e{text-anchor:end}"
    ".halo{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}"
    ".axes{fill:none;stroke:#8b95a1}.g{stroke:#e3e6ea;fill:none}.ink{stroke:#1f2733;fill:none}"
    ".roof{fill:none;stroke:#5d6773;stroke-width:1.6}.flat{stroke-dasharray:2 4}"
    ".c0{fill:#1f6fb5}.c1{fill:#c8501e}.c2{fill:#2b8a3e}.c3{fill:#8e44ad}.c4{fill:#b0860b}"
    ".c5{fill:#0f8b8d}.c6{fill:#c2255c}.c7{fill:#6b7480}"
    ".s0{stroke:#1f6fb5}.s1{stroke:#c8501e}.s2{stroke:#2b8a3e}.s3{stroke:#8e44ad}"
    ".s4{stroke:#b0860b}.s5{stroke:#0f8b8d}.s6{stroke:#c2255c}.s7{stroke:#6b7480}"
    ".hollow{fill:#ffffff}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.bg{fill:#15181d}.n{fill:#a7b0bc}"
    ".halo{stroke:#15181d}.axes{stroke:#6b7683}.g{stroke:#2b313a}.ink{stroke:#e6e9ee}"
    ".roof{stroke:#a7b0bc}"
    ".c0{fill:#5aa9e6}.c1{fill:#f2895c}.c2{fill:#63c174}.c3{fill:#c08ae0}.c4{fill:#e0b93f}"
    ".c5{fill:#45c1c3}.c6{fill:#f06595}.c7{fill:#a7b0bc}"
    ".s0{stroke:#5aa9e6}.s1{stroke:#f2895c}.s2{stroke:#63c174}.s3{stroke:#c08ae0}"
    ".s4{stroke:#e0b93f}.s5{stroke:#45c1c3}.s6{stroke:#f06595}.s7{stroke:#a7b0bc}"
    ".hollow{fill:#15181d}}";

void chart_open(FILE *out, double width, double height, const char *title) {
    char fit[256];
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\">\n<style>%s</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" class=\"bg\"/>\n",
            width, height, width, height, style);
    chart_text(out, CHART_MARGIN, 32, CHART_START, "h", "%s",
               svg_fit(title, 17, SVG_BOLD, width - 2 * CHART_MARGIN, fit, sizeof fit));
}

void chart_note_suffix(const char *tool, const char *flag, const char *path) {
    static const char *const others[] = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".html"};
    const char *suffix = strrchr(path, '.');
    for (size_t i = 0; suffix && i < sizeof others / sizeof *others; i++)
        if (ggl_case_compare(suffix, others[i]) == 0)
            tool_note(tool, "%s: %s is an SVG file: a name that ends in .svg opens it everywhere",
                      flag, path);
}

void chart_close(FILE *out) {
    fputs("</svg>\n", out);
}

void chart_text(FILE *out, double x, double y, chart_anchor anchor, const char *class,
                const char *fmt, ...) {
    static const char *const anchors[] = {"", " m", " e"};
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s%s\">", x, y, class, anchors[anchor]);
    svg_put(out, text);
    fputs("</text>\n", out);
}

void chart_text_up(FILE *out, double x, double y, const char *text) {
    fprintf(out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" class=\"n m\">", x, y);
    svg_put(out, text);
    fputs("</text>\n", out);
}

int chart_note(FILE *out, double x, double y, double width, const char *text) {
    int n = 0;
    while (*text) {
        char line[256] = "", fit[256];
        size_t end = 0; /* as many words as fit; at least one */
        for (size_t next = 0; text[next];) {
            next += 1 + strcspn(text + next + 1, " ");
            if (next >= sizeof line)
                break;
            memcpy(line, text, next);
            line[next] = '\0';
            if (end > 0 && svg_text_width(line, CHART_NOTE, SVG_PLAIN) > width)
                break;
            end = next;
        }
        if (end == 0) /* a word longer than any line */
            end = sizeof line - 1;
        memcpy(line, text, end);
        line[end] = '\0';
        if (out)
            chart_text(out, x, y + n * CHART_NOTE_LINE, CHART_START, "n", "%s",
                       svg_fit(line, CHART_NOTE, SVG_PLAIN, width, fit, sizeof fit));
        text += end;
        text += strspn(text, " ");
        n++;
    }
    return n;
}

bool chart_shows(double x) {
    return x == 0 || (x >= 1e-60 && x <= 1e60);
}

double chart_step(double top, int n) {
    if (!(top > 0) || !chart_shows(top))
        return 1;
    double power = pow(10, floor(log10(top / n))), rest = top / n / power;
    return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

void chart_legend_add(FILE *out, chart_legend *l, int series, const char *name) {
    char fit[256];
    svg_fit(name, CHART_SIZE, SVG_PLAIN, l->right - l->left - DOT, fit, sizeof fit);
    double w = DOT + svg_text_width(fit, CHART_SIZE, SVG_PLAIN);
    if (l->x > l->left && l->x + w > l->right) {
        l->x = l->left;
        l->y += CHART_LINE;
    }
    if (out) {
        fprintf(out,
                "<g class=\"legend\" data-series=\"%d\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" "
                "class=\"c%d\"/>\n",
                series, l->x + 5, l->y - 4, series % CHART_SERIES);
        chart_text(out, l->x + DOT, l->y, CHART_START, "t", "%s", fit);
        fputs("</g>\n", out);
    }
    l->x += w + ENTRY_GAP;
}
