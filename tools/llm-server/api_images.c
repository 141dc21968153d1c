#include "api_images.h"

#include <stdio.h>
#include <string.h>

#include "dialect.h"
#include "ggl/internal/text.h"
#include "template/parts.h"

enum { KEY = IMAGE_MARK - 4 }; /* letters of a mark, before the number's three digits and a "_" */
_Static_assert(KEY + 1 == sizeof((ask *)0)->image_key, "the room for it");
_Static_assert(IMAGE_MOST <= 1000, "three digits");

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a picture");
}

/* --- marks -------------------------------------------------------------------------------------- */

bool image_find_mark(const ask *a, const char *text, size_t n, size_t *at, size_t *which) {
    const char *end = text + n, *s = text + *at;
    while (a->n_images > 0 && (s = ggl_find_bytes(s, (size_t)(end - s), a->image_key, KEY))) {
        size_t k = 0, i = KEY;
        while (i < IMAGE_MARK - 1 && s + i < end && s[i] >= '0' && s[i] <= '9')
            k = k * 10 + (size_t)(s[i++] - '0');
        if (i == IMAGE_MARK - 1 && s + i < end && s[i] == '_' && k < a->n_images) {
            *at = (size_t)(s - text);
            *which = k;
            return true;
        }
        s += KEY;
    }
    return false;
}

size_t image_hide_marks(const ask *a, char *text, size_t n) {
    static const char place[] = IMAGE_PLACE;
    _Static_assert(sizeof place <= IMAGE_MARK, "the text becomes shorter");
    size_t from = 0, at = 0, which, n_out = 0;
    while (image_find_mark(a, text, n, &at, &which)) {
        memmove(text + n_out, text + from, at - from);
        n_out += at - from;
        memcpy(text + n_out, place, sizeof place - 1);
        n_out += sizeof place - 1;
        from = at += IMAGE_MARK;
    }
    memmove(text + n_out, text + from, n - from);
    return n_out + n - from;
}

/* --- adding ------------------------------------------------------------------------------------- */

static ggl_status refuse(const ask *a, const char *input, const char *lacks, const char *organ,
                         ggl_error *err) {
    if (a->lack && *a->lack)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s input is not supported: the model %s: %s", input,
                        lacks, a->lack);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s input is not supported: the server was started without an %s for its model "
                    "(--mmproj FILE)",
                    input, organ);
}

ggl_status image_check_seen(const ask *a, ggl_error *err) {
    return a->sees ? GGL_OK : refuse(a, "image", "sees no pictures", "eye", err);
}

static ggl_status check_heard(const ask *a, ggl_error *err) {
    return a->listens ? GGL_OK : refuse(a, "audio", "hears no sounds", "ear", err);
}

/* True if base64 is RIFF whose kind ends with these three letters, written as base64. */
static bool is_riff(ggl_str digits, const char *kind) {
    return digits.n > 16 && memcmp(digits.s, "UklGR", 5) == 0 &&
           memcmp(digits.s + 12, kind, 4) == 0;
}

bool image_is_sound(const ask *a, ggl_str digits) {
    static const char *const pictures[] = {"iVBORw0KGgo", "/9j/", "R0lGOD", "Qk", "UDU", "UDY"};
    bool is_picture = is_riff(digits, "RUJQ"); /* WEBP */
    if (is_riff(digits, "QVZF"))               /* WAVE */
        return true;
    for (size_t k = 0; k < sizeof pictures / sizeof *pictures; k++)
        is_picture |= digits.n > strlen(pictures[k]) &&
                      memcmp(digits.s, pictures[k], strlen(pictures[k])) == 0;
    return a->listens && !(a->sees && is_picture);
}

/* Makes room for a picture or a sound, and its mark. */
static ggl_status begin_image(ask *a, bool is_sound, ask_image **out, ggl_str *mark,
                              ggl_error *err) {
    const ggl_status st = (is_sound ? check_heard : image_check_seen)(a, err);
    if (st != GGL_OK)
        return st;
    if (a->n_images == IMAGE_MOST)
        return ggl_fail(err, GGL_LIMIT, "a request has at most %d %s", IMAGE_MOST,
                        is_sound ? "sounds" : "pictures");
    if (a->n_images == 0) {
        memcpy(a->image_key, "media", 5);
        random_text(a->image_key + 5, KEY - 5);
    }
    char *text = ggl_arena_alloc(&a->arena, IMAGE_MARK + 1, 1);
    if (!text || !ggl_grow(&a->image, &a->cap_images, a->n_images + 1, sizeof *a->image))
        return no_memory(err);
    snprintf(text, IMAGE_MARK + 1, "%s%03zu_", a->image_key, a->n_images);
    *mark = (ggl_str){text, IMAGE_MARK};
    *out = &a->image[a->n_images];
    **out = (ask_image){.is_sound = is_sound};
    return GGL_OK;
}

ggl_status image_of_base64(ask *a, ggl_str digits, bool is_sound, ggl_str *mark, ggl_error *err) {
    ask_image *image = NULL;
    ggl_status st = begin_image(a, is_sound, &image, mark, err);
    if (st == GGL_OK)
        st = llm_part_bytes(&image->bytes, &image->n, digits, is_sound, err);
    if (st != GGL_OK)
        return st;
    a->n_images++;
    a->n_image_text += digits.n;
    return GGL_OK;
}

static ggl_status of_address(ask *a, ggl_str url, ggl_str *mark, ggl_error *err) {
    ask_image *image = NULL;
    ggl_status st = begin_image(a, false, &image, mark, err);
    if (st != GGL_OK)
        return st;
    if (!a->fetches)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "this server does not fetch pictures from addresses (--allow-image-urls): send "
            "the picture itself, as data:image/png;base64,..");
    if (url.n > IMAGE_MOST_URL)
        return ggl_fail(err, GGL_LIMIT,
                        "a picture's address has %zu bytes, but may have at most %d", url.n,
                        IMAGE_MOST_URL);
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char)url.s[i] <= ' ' || url.s[i] == 127)
            return ggl_fail(err, GGL_USAGE,
                            "a picture's address has a space or a control character");
    image->url = ggl_arena_strndup(&a->arena, url.s, url.n);
    if (!image->url)
        return no_memory(err);
    a->n_images++;
    return GGL_OK;
}

ggl_status image_of_url(ask *a, ggl_str url, ggl_str *mark, ggl_error *err) {
    ggl_str digits;
    if (ggl_case_str_begins_with(url, "http://") || ggl_case_str_begins_with(url, "https://"))
        return of_address(a, url, mark, err);
    if (llm_part_digits(&digits, url))
        return image_of_base64(a, digits, false, mark, err);
    return ggl_fail(
        err, GGL_USAGE,
        "a picture must be data:image/TYPE;base64,DIGITS, or an address that begins with "
        "https:// or http://");
}

/* --- parts -------------------------------------------------------------------------------------- */

static const field part_fields[] = {{"type", .kind = FIELD_IGNORED},
                                    {"image_url", .kind = FIELD_IGNORED},
                                    {"image", .kind = FIELD_IGNORED},
                                    {"url", .kind = FIELD_IGNORED},
                                    {"detail", .kind = FIELD_IGNORED},
                                    {"file_id", FIELD_REFUSED, .why = "the server keeps no files"},
                                    {"cache_control", .kind = FIELD_IGNORED},
                                    {"prompt_cache_breakpoint", .kind = FIELD_IGNORED},
                                    {0}};
static const field url_fields[] = {
    {"url", .kind = FIELD_IGNORED}, {"detail", .kind = FIELD_IGNORED}, {0}};

ggl_status image_of_part(ask *a, const json_value *part, ggl_str *mark, ggl_error *err) {
    static const char *const forms[] = {"image_url", "url", "image"}; /* as llm_part_address */
    const char *param;
    ggl_str url;
    ggl_status st = image_check_seen(a, err);
    if (st == GGL_OK)
        st = read_fields(a, part, part_fields, NULL, &param, err);
    for (size_t i = 0; i < sizeof forms / sizeof *forms && st == GGL_OK; i++) {
        const json_value *v = llm_json_get_kind(part, forms[i], JSON_OBJECT);
        const size_t outer = fields_enter(&a->ignored, forms[i]);
        if (v)
            st = read_fields(a, v, url_fields, NULL, &param, err);
        fields_leave(&a->ignored, outer);
    }
    if (st == GGL_OK)
        st = llm_part_address(&url, part, err);
    return st == GGL_OK ? image_of_url(a, url, mark, err) : st;
}

static const field sound_fields[] = {{"type", .kind = FIELD_IGNORED},
                                     {"input_audio", .kind = FIELD_IGNORED},
                                     {"cache_control", .kind = FIELD_IGNORED},
                                     {"prompt_cache_breakpoint", .kind = FIELD_IGNORED},
                                     {0}};
static const field audio_fields[] = {
    {"data", .kind = FIELD_IGNORED}, {"format", .kind = FIELD_IGNORED}, {0}};

ggl_status image_of_sound_part(ask *a, const json_value *part, ggl_str *mark, ggl_error *err) {
    const json_value *audio = llm_json_get_kind(part, "input_audio", JSON_OBJECT);
    const char *param;
    ggl_str digits;
    ggl_status st = check_heard(a, err);
    if (st == GGL_OK)
        st = read_fields(a, part, sound_fields, NULL, &param, err);
    const size_t outer = fields_enter(&a->ignored, "input_audio");
    if (st == GGL_OK && audio)
        st = read_fields(a, audio, audio_fields, NULL, &param, err);
    fields_leave(&a->ignored, outer);
    if (st == GGL_OK)
        st = llm_part_sound(&digits, part, err);
    return st == GGL_OK ? image_of_base64(a, digits, true, mark, err) : st;
}
