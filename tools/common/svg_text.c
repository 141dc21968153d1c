#include "svg_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "char_width.h"

/* True if XML allows a character. */
static bool is_allowed(uint32_t c) {
    return c >= ' ' && c != 0x7f && c != 0xfffe && c != 0xffff;
}

void svg_put(FILE *out, const char *s) {
    static const char *const escape[] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"};
    for (size_t left = strlen(s), n; left > 0; left -= n, s += n) {
        uint32_t c;
        char text[4];
        n = char_read(s, left, &c);
        if (c < sizeof escape / sizeof *escape && escape[c])
            fputs(escape[c], out);
        else if (is_allowed(c))
            fwrite(text, 1, char_write(c, text), out);
    }
}

/* Thousandths of the size, from the space to the tilde, in DejaVu Sans. */
static const uint16_t widths[] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
enum { FIXED = 602, WIDE = 1000, OTHER = 838 };

static double char_part(uint32_t c, svg_face face) {
    int columns = char_width(c);
    if (columns != 1 || c >= 0x2e80) /* from another font, for East Asian writing or U+FFFD */
        return columns == 0 ? 0 : WIDE * 1e-3;
    if (face == SVG_FIXED)
        return FIXED * 1e-3;
    double part = (c >= ' ' && c - ' ' < sizeof widths / sizeof *widths ? widths[c - ' '] : OTHER);
    return part * (face == SVG_BOLD ? 1.11e-3 : 1e-3);
}

double svg_text_width(const char *s, double size, svg_face face) {
    double sum = 0;
    for (size_t left = strlen(s), n; left > 0; left -= n, s += n) {
        uint32_t c;
        n = char_read(s, left, &c);
        sum += is_allowed(c) ? char_part(c, face) : 0;
    }
    return sum * size;
}

const char *svg_fit(const char *s, double size, svg_face face, double width, char *buf, size_t n) {
    const double dots = svg_text_width("...", size, face);
    size_t keep = 0, left = strlen(s), bytes;
    if (left < n && svg_text_width(s, size, face) <= width)
        return memcpy(buf, s, left + 1);
    for (double sum = dots; left > 0; left -= bytes, keep += bytes) {
        uint32_t c;
        bytes = char_read(s + keep, left, &c);
        sum += is_allowed(c) ? char_part(c, face) * size : 0;
        if (sum > width || keep + bytes + 4 > n)
            break;
    }
    memcpy(buf, s, keep);
    memcpy(buf + keep, "...", 4);
    return buf;
}
