#include "fit.h"

#include <math.h>

enum {
    SIDE = 1 << 30, /* the largest side; products of two of them do not overflow */
    RATIO = 200     /* of the sides, at most, of fits that follow */
};

typedef struct sides {
    double width, height;
} sides;

/* --- fits that follow the picture's own size ------------------------------------------------- */

static sides multiples(sides x, double side, double (*round)(double x)) {
    return (sides){round(x.width / side) * side, round(x.height / side) * side};
}

static double half_up(double x) {
    return floor(x + 0.5);
}

/* Multiples of `side` that are near the picture's own size; if that makes too many or too few pixels, those that are as near to its shape.
 * Where the picture is stretched, halves become even, and a side that is far too short counts as 0 at first, so that there are too few. */
static sides follow(const llm_arch_picture *rule, sides own, double side) {
    const bool is_stretched = rule->fit == LLM_FIT_FOLLOW;
    const double most = (double)rule->most, least = (double)rule->least,
                 pixels = own.height * own.width;
    sides to = multiples(own, side, is_stretched ? nearbyint : half_up);
    if (!is_stretched)
        to = (sides){fmax(to.width, side), fmax(to.height, side)};
    if (to.width * to.height > most) {
        const double by = sqrt(pixels / most);
        to = multiples((sides){own.width / by, own.height / by}, side, floor);
    } else if (to.width * to.height < least) {
        const double by = sqrt(least / pixels);
        to = multiples((sides){own.width * by, own.height * by}, side, ceil);
    }
    to = (sides){fmax(to.width, side), fmax(to.height, side)};
    if (to.width * to.height <= most)
        return to;
    /* A thin picture is a block high at least, and an enlarged one is rounded up: the longer side gives way. */
    const double shorter = fmin(fmin(to.width, to.height), floor(most / (side * side)) * side),
                 longer = fmax(floor(most / shorter / side) * side, side);
    return to.width > to.height ? (sides){longer, shorter} : (sides){shorter, longer};
}

/* The largest size of its shape; of a thin picture, a block high, the length is a whole number of times the height. */
static sides fill(const llm_arch_picture *rule, sides own, double side) {
    const double by = sqrt((double)rule->most / (own.height * own.width));
    const sides to = multiples((sides){own.width * by, own.height * by}, side, floor);
    const double longest = floor((double)rule->most / (side * side)) * side;
    if (to.height < side)
        return (sides){fmin(floor(own.width / own.height) * side, longest), side};
    return to.width < side ? (sides){side, fmin(floor(own.height / own.width) * side, longest)}
                           : to;
}

/* Rounded up; where that is too much, the scale is a fiftieth less, as often as that is possible. */
static sides steps(const llm_arch_picture *rule, sides own, double side) {
    const double most = (double)rule->most;
    double by = 1;
    sides to = multiples(own, side, ceil);
    while (to.width * to.height > most && by > 0.02) {
        by -= 0.02;
        to = multiples((sides){own.width * by, own.height * by}, side, ceil);
    }
    return to.width * to.height <= most ? to : follow(rule, own, side);
}

/* Rounded up, by the largest scale that makes no more patches than are whole in the picture, or than the rule's pixels allow. Found by halves, as the processors do that models
 * were published with, from the same bounds to the same width. */
static sides patches(const llm_arch_picture *rule, sides own, double side) {
    const double width = 1e-5, patch = (double)rule->patch, each = patch * patch;
    const double whole = floor(own.width / patch) * floor(own.height / patch);
    const double n =
        fmin(fmax(whole, fmax(floor((double)rule->least / each), 1)), (double)rule->most / each);
    double least = width / 10, most = 100;
    while (most - least >= width) {
        const double by = (least + most) / 2;
        const sides to = multiples((sides){own.width * by, own.height * by}, side, ceil);
        *(to.width * to.height <= n * each ? &least : &most) = by;
    }
    return multiples((sides){own.width * least, own.height * least}, side, ceil);
}

/* Sides of whole blocks around the own ones, or those of the largest size, in the nearest shape; of equally near ones, the larger. */
static sides aspect(const llm_arch_picture *rule, sides own, double side) {
    const double most = floor((double)rule->most / (side * side)), ratio = own.width / own.height;
    sides n = {own.width / side, own.height / side}, best = {0, 0};
    if (n.width * n.height > most) {
        n.height = sqrt(most / ratio);
        n.width = n.height * ratio;
    }
    for (int i = 0; i < 4; i++) {
        const sides x = {i % 2 ? ceil(n.width) : floor(n.width),
                         i / 2 ? ceil(n.height) : floor(n.height)};
        const double off = fabs(x.height / x.width - own.height / own.width),
                     least = fabs(best.height / best.width - own.height / own.width);
        if (x.width >= 1 && x.height >= 1 && x.width * x.height <= most &&
            (best.width < 1 || off < least ||
             (off == least && x.width * x.height > best.width * best.height)))
            best = x;
    }
    if (best.width < 1)
        best = (sides){fmin(fmax(nearbyint(n.width), 1), most),
                       fmin(fmax(nearbyint(n.height), 1), most)};
    return (sides){best.width * side, best.height * side};
}

/* Smaller, if a side is too long, and up to whole blocks. */
static sides longest(const llm_arch_picture *rule, sides own, double side) {
    const double size = (double)rule->size;
    const double ratio = fmax(own.height / size, own.width / size);
    if (ratio > 1)
        own = (sides){fmax(floor(own.width / ratio), 1), fmax(floor(own.height / ratio), 1)};
    return (sides){ceil(own.width / side) * side, ceil(own.height / side) * side};
}

/* In its own shape, with about size * size pixels; halves become even, as Python rounds. */
static sides area(const llm_arch_picture *rule, sides own, double side) {
    const double shape = own.width / own.height, height = floor((double)rule->size / sqrt(shape));
    const sides to = multiples((sides){floor(height * shape), height}, side, nearbyint);
    return (sides){fmax(to.width, side), fmax(to.height, side)};
}

/* No larger than it is, and smaller if it has too many whole patches, or a side is too long. */
static sides within(const llm_arch_picture *rule, sides own) {
    const double patch = (double)rule->patch, size = rule->size > 0 ? (double)rule->size : SIDE;
    const double n = fmax(floor(own.height / patch), 1) * fmax(floor(own.width / patch), 1);
    const double by = fmin(fmin(1, sqrt((double)rule->most / (patch * patch) / n)),
                           fmin(size / own.height, size / own.width));
    return (sides){fmin(fmax(floor(own.width * by), 1), size),
                   fmin(fmax(floor(own.height * by), 1), size)};
}

/* Whole blocks around it, or around one that is larger if these have too few pixels. Of too many, the largest height whose blocks are few enough is found by halves. */
static sides canvas(const llm_arch_picture *rule, sides own, double side) {
    const double most = (double)rule->most, least = (double)rule->least;
    sides to = multiples(own, side, ceil);
    if (to.width * to.height < least) {
        const double by = sqrt(least / (own.height * own.width));
        to = multiples((sides){ceil(own.width * by), ceil(own.height * by)}, side, ceil);
    }
    if (to.width * to.height <= most)
        return to;
    to = (sides){side, side};
    for (double low = 1, high = own.height; low <= high;) {
        const double height = floor((low + high) / 2);
        const sides at =
            multiples((sides){fmax(floor(own.width * height / own.height), 1), height}, side, ceil);
        if (at.width * at.height <= most)
            to = at, low = height + 1;
        else
            high = height - 1;
    }
    return to;
}

/* How large it is on its canvas: no larger than its own size, unless that has too few pixels. */
static sides on_canvas(const llm_arch_picture *rule, sides own, sides to) {
    double by = fmin(to.height / own.height, to.width / own.width);
    if (own.height * own.width >= (double)rule->least)
        by = fmin(by, 1);
    return (sides){fmax(fmin(floor(own.width * by), to.width), 1),
                   fmax(fmin(floor(own.height * by), to.height), 1)};
}

/* The size in the picture's shape whose lines of blocks take at most n tokens in pairs, as the authors of DeepSeek-V4-Flash-Vision solve it: an even number of lines,
 * and columns with one more behind them. */
static sides smaller(const llm_arch_picture *rule, sides own, double n) {
    const double patch = (double)rule->patch, side = patch * (double)rule->block;
    const double shape = own.height / own.width, across = sqrt((n - 2) / shape + 0.25) - 0.5,
                 lines = across * shape;
    if (across < 1)
        return (sides){side, floor((n - 2) / 2 / 2) * 2 * side};
    if (lines < 2)
        return (sides){fmax(floor((n - 2) / 2) - 1, 2) * side, 2 * side};
    const double by =
        fmin(floor(across) * side / own.width, floor(lines / 2) * 2 * side / own.height);
    const sides to = multiples((sides){own.width * by, own.height * by}, patch, floor);
    return (sides){fmax(to.width, patch), fmax(to.height, patch)};
}

static sides tokens(const llm_arch_picture *rule, sides own) {
    const double patch = (double)rule->patch;
    if (rule->wide > 0 && own.width > own.height * (double)rule->wide)
        own.width = own.height * (double)rule->wide;
    if (own.width * own.height < (double)rule->least) {
        const double by = sqrt((double)rule->least / (own.width * own.height));
        own = (sides){floor(own.width * by), floor(own.height * by)};
    }
    sides to = multiples(own, patch, ceil);
    for (int64_t n = rule->most - (rule->pairs - 1); n > 2; n--) {
        const double side = patch * (double)rule->block, nx = ceil(to.width / side),
                     ny = ceil(to.height / side);
        if (nx * ny <= (double)rule->most &&
            llm_arch_picture_tokens(rule, (int64_t)nx, (int64_t)ny) <= rule->most)
            break;
        to = smaller(rule, own, (double)n);
    }
    return to;
}

/* --- where it lies --------------------------------------------------------------------------- */

/* Computed in floats, like the processors that models were published with. */
void llm_picture_pad(llm_picture_fit *f, int64_t width, int64_t height) {
    const float by_width = (float)f->width / (float)width,
                by_height = (float)f->height / (float)height;
    const float scale = by_width < by_height ? by_width : by_height;
    const int64_t w = (int64_t)ceilf((float)width * scale),
                  h = (int64_t)ceilf((float)height * scale);
    f->inner_width = w < f->width ? w : f->width;
    f->inner_height = h < f->height ? h : f->height;
    f->left = (f->width - f->inner_width) / 2;
    f->top = (f->height - f->inner_height) / 2;
}

/* Python's rounding, and ratios before products, as Pillow has them. */
static void pil_pad(llm_picture_fit *f, int64_t width, int64_t height) {
    const double w = (double)width, h = (double)height, own = w / h,
                 shape = (double)f->width / (double)f->height;
    if (own > shape)
        f->inner_height = (int64_t)fmax(nearbyint(h / w * (double)f->width), 1);
    else if (own < shape)
        f->inner_width = (int64_t)fmax(nearbyint(w / h * (double)f->height), 1);
    f->left = (int64_t)nearbyint((double)(f->width - f->inner_width) * 0.5);
    f->top = (int64_t)nearbyint((double)(f->height - f->inner_height) * 0.5);
}

/* The shorter side to `size`, the longer one cut off to a whole number; the middle of it. */
static void crop(llm_picture_fit *f, int64_t size, int64_t width, int64_t height) {
    const bool is_tall = width <= height;
    const int64_t longer = size * (is_tall ? height : width) / (is_tall ? width : height);
    f->inner_width = is_tall ? size : longer;
    f->inner_height = is_tall ? longer : size;
    f->left = -((f->inner_width - f->width) / 2);
    f->top = -((f->inner_height - f->height) / 2);
}

/* True if the squares within a block consist of whole ones. */
static bool has_squares(const llm_arch_picture *rule) {
    int64_t around = rule->block;
    for (int k = 0; k < LLM_ARCH_MAX_INNER; k++) {
        const int64_t side = rule->inner[k] > 0 ? rule->inner[k] : 1;
        if (rule->inner[k] < 0 || around % side != 0)
            return false;
        around = side;
    }
    return true;
}

static ggl_status check(const llm_arch_picture *rule, int64_t width, int64_t height,
                        const char *name, ggl_error *err) {
    const bool is_counted = llm_arch_fit_is_counted(rule->fit);
    if (width < 1 || height < 1 || width > SIDE || height > SIDE)
        return ggl_fail(err, GGL_USAGE, "%s: a picture of %lld x %lld pixels", name,
                        (long long)width, (long long)height);
    if (rule->patch < 1 || rule->block < 1 || !has_squares(rule) ||
        rule->patch > SIDE / 2 / rule->block || rule->first < 0 || rule->first > SIDE ||
        rule->table < 0 || rule->table > 1 << 15)
        return ggl_fail(err, GGL_USAGE,
                        "%s: patches of %lld pixels in blocks of %lld, %lld rows before them, a "
                        "table of %lld",
                        name, (long long)rule->patch, (long long)rule->block,
                        (long long)rule->first, (long long)rule->table);
    const int64_t side = rule->patch * rule->block;
    if (rule->fit == LLM_FIT_TOKENS ? rule->least < 1 || rule->pairs < 1 || rule->table > 0 ||
                                          rule->most < 4 * rule->pairs || rule->most > SIDE ||
                                          rule->most > LLM_PICTURE_SEEN / side / side
        : is_counted ? rule->least < 0 || rule->most < side * side || rule->least > rule->most
                     : rule->size < side || rule->size > SIDE)
        return ggl_fail(err, GGL_USAGE, "%s: sides of %lld pixels, or %lld to %lld pixels in all",
                        name, (long long)rule->size, (long long)rule->least, (long long)rule->most);
    if ((is_counted || rule->fit == LLM_FIT_AREA) &&
        (width > RATIO * height || height > RATIO * width))
        return ggl_fail(err, GGL_LIMIT,
                        "%s: has %lld x %lld pixels; the model reads pictures of which no side is "
                        "more than %d times as long as the other: cut it into parts",
                        name, (long long)width, (long long)height, RATIO);
    return GGL_OK;
}

/* The size of what the model sees; as a double, in which no such size is wrong. */
static sides size_of(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const double side = (double)(rule->patch * rule->block), size = (double)rule->size;
    const sides own = {(double)width, (double)height};
    switch (rule->fit) {
    case LLM_FIT_FOLLOW:
    case LLM_FIT_FOLLOW_PAD:
        return follow(rule, own, side);
    case LLM_FIT_LONGEST:
        return longest(rule, own, side);
    case LLM_FIT_AREA:
        return area(rule, own, side);
    case LLM_FIT_FILL:
        return fill(rule, own, side);
    case LLM_FIT_ASPECT:
        return aspect(rule, own, side);
    case LLM_FIT_STEPS:
        return steps(rule, own, side);
    case LLM_FIT_PATCHES:
        return patches(rule, own, side);
    case LLM_FIT_WITHIN:
        return multiples(within(rule, own), side, ceil);
    case LLM_FIT_TOKENS:
        return tokens(rule, own);
    case LLM_FIT_CANVAS:
        return canvas(rule, own, side);
    case LLM_FIT_STRETCH:
    case LLM_FIT_PAD:
    case LLM_FIT_CROP:
    case LLM_FIT_PIL_PAD:
        break;
    }
    return (sides){size, size};
}

ggl_status llm_picture_fit_for(llm_picture_fit *f, const llm_arch_picture *rule, int64_t width,
                               int64_t height, const char *name, ggl_error *err) {
    *f = (llm_picture_fit){0};
    const ggl_status st = check(rule, width, height, name, err);
    if (st != GGL_OK)
        return st;
    const sides to = size_of(rule, width, height);
    if (to.width * to.height > LLM_PICTURE_SEEN)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: the model would see %.0f x %.0f pixels of it, more than %d", name,
                        to.width, to.height, LLM_PICTURE_SEEN);
    f->width = f->inner_width = (int64_t)to.width;
    f->height = f->inner_height = (int64_t)to.height;
    if (rule->fit == LLM_FIT_PAD || rule->fit == LLM_FIT_FOLLOW_PAD)
        llm_picture_pad(f, width, height);
    else if (rule->fit == LLM_FIT_PIL_PAD ||
             (rule->fit == LLM_FIT_TOKENS && (rule->wide == 0 || width < rule->wide * height)))
        pil_pad(f, width, height);
    else if (rule->fit == LLM_FIT_WITHIN || rule->fit == LLM_FIT_CANVAS) {
        const sides own = {(double)width, (double)height}, inner = rule->fit == LLM_FIT_WITHIN
                                                                       ? within(rule, own)
                                                                       : on_canvas(rule, own, to);
        f->inner_width = (int64_t)inner.width;
        f->inner_height = (int64_t)inner.height;
    } else if (rule->fit == LLM_FIT_CROP)
        crop(f, rule->size, width, height);
    f->nx = llm_picture_patches(rule, f->width);
    f->ny = llm_picture_patches(rule, f->height);
    f->n_rows = rule->first + f->nx * f->ny;
    if (f->nx % rule->block || f->ny % rule->block)
        return ggl_fail(
            err, GGL_USAGE, "%s: %lld x %lld patches, which are no blocks of %lld x %lld", name,
            (long long)f->nx, (long long)f->ny, (long long)rule->block, (long long)rule->block);
    return GGL_OK;
}
