#include "multipart.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static ggl_str skip_blanks(ggl_str s) {
    while (s.n > 0 && is_blank(*s.s))
        s = (ggl_str){s.s + 1, s.n - 1};
    return s;
}

static bool equals(ggl_str s, const char *word) {
    return s.n == strlen(word) && ggl_case_compare_n(s.s, word, s.n) == 0;
}

/* --- parameters of a header ------------------------------------------------------------------- */

/* Takes the next `; key=value` of *s. Returns 1, 0 at the end, or -1: it is damaged. */
static int next_parameter(ggl_str *s, ggl_str *key, ggl_str *value) {
    ggl_str x = skip_blanks(*s);
    if (x.n == 0)
        return 0;
    if (*x.s != ';')
        return -1;
    x = skip_blanks((ggl_str){x.s + 1, x.n - 1});
    if (x.n == 0)
        return 0;
    size_t k = 0;
    while (k < x.n && x.s[k] != '=' && x.s[k] != ';')
        k++;
    if (k == 0 || k == x.n || x.s[k] != '=')
        return -1;
    *key = (ggl_str){x.s, k};
    x = (ggl_str){x.s + k + 1, x.n - k - 1};
    const bool is_quoted = x.n > 0 && *x.s == '"';
    if (is_quoted)
        x = (ggl_str){x.s + 1, x.n - 1};
    for (k = 0; k < x.n && x.s[k] != (is_quoted ? '"' : ';'); k++)
        if (is_quoted && x.s[k] == '\\' && k + 1 < x.n)
            k++;
    if (is_quoted && k == x.n)
        return -1;
    *value = (ggl_str){x.s, k};
    while (!is_quoted && value->n > 0 && is_blank(value->s[value->n - 1]))
        value->n--;
    *s = (ggl_str){x.s + k + is_quoted, x.n - k - is_quoted};
    return 1;
}

/* Returns the value up to its parameters, which are what is left of *s. */
static ggl_str take_value(ggl_str *s) {
    ggl_str x = skip_blanks(*s);
    size_t k = 0;
    while (k < x.n && x.s[k] != ';')
        k++;
    *s = (ggl_str){x.s + k, x.n - k};
    while (k > 0 && is_blank(x.s[k - 1]))
        k--;
    return (ggl_str){x.s, k};
}

bool multipart_is_type(const char *type) {
    ggl_str s = {type, type ? strlen(type) : 0};
    return type && equals(take_value(&s), "multipart/form-data");
}

ggl_status multipart_boundary(const char *type, char out[MULTIPART_BOUNDARY + 1], ggl_error *err) {
    static const char marks[] = "'()+_,-./:=? ";
    ggl_str s = {type, strlen(type)}, key, value;
    int more;
    (void)take_value(&s);
    while ((more = next_parameter(&s, &key, &value)) > 0)
        if (equals(key, "boundary"))
            break;
    if (more <= 0)
        return ggl_fail(err, GGL_FORMAT, "the Content-Type %s",
                        more ? "has damaged parameters"
                             : "lacks the boundary of multipart/form-data");
    bool is_bad = value.n == 0 || value.n > MULTIPART_BOUNDARY || value.s[value.n - 1] == ' ';
    for (size_t i = 0; i < value.n && !is_bad; i++) {
        const char c = value.s[i], low = (char)(c | 32);
        is_bad = !((c >= '0' && c <= '9') || (low >= 'a' && low <= 'z') || (c && strchr(marks, c)));
    }
    if (is_bad)
        return ggl_fail(err, GGL_FORMAT,
                        "the boundary of the Content-Type must have 1 to %d letters, digits and "
                        "marks, as RFC 2046 allows them",
                        (int)MULTIPART_BOUNDARY);
    memcpy(out, value.s, value.n);
    out[value.n] = '\0';
    return GGL_OK;
}

/* --- headers ---------------------------------------------------------------------------------- */

static ggl_status read_disposition(multipart_part *p, ggl_str s, size_t k, ggl_error *err) {
    ggl_str key, value;
    int more = equals(take_value(&s), "form-data") ? 1 : -1;
    bool has_name = false;
    while (more > 0 && (more = next_parameter(&s, &key, &value)) > 0) {
        if (equals(key, "name")) {
            p->name = value;
            has_name = true;
        } else if (equals(key, "filename")) {
            p->filename = value;
            p->is_file = true;
        }
    }
    return more == 0 && has_name
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "the form's part %zu must have the header Content-Disposition: "
                          "form-data; name=\"..\"",
                          k);
}

static ggl_status read_header(multipart_part *p, ggl_str line, size_t k, bool *has_disposition,
                              ggl_error *err) {
    const char *colon = memchr(line.s, ':', line.n);
    if (is_blank(*line.s))
        return ggl_fail(err, GGL_FORMAT, "the form's part %zu has a header of several lines", k);
    if (!colon || memchr(line.s, '\0', line.n))
        return ggl_fail(err, GGL_FORMAT, "the form's part %zu has a damaged header", k);
    const ggl_str name = {line.s, (size_t)(colon - line.s)};
    ggl_str value = {colon + 1, line.n - name.n - 1};
    if (equals(name, "Content-Disposition")) {
        if (*has_disposition)
            return ggl_fail(err, GGL_FORMAT, "the form's part %zu has two Content-Disposition", k);
        *has_disposition = true;
        return read_disposition(p, value, k, err);
    }
    if (!equals(name, "Content-Transfer-Encoding"))
        return GGL_OK;
    const ggl_str how = take_value(&value);
    if (equals(how, "binary") || equals(how, "8bit") || equals(how, "7bit"))
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the form's part %zu has the Content-Transfer-Encoding %.*s; send its bytes as "
                    "they are",
                    k, how.n > 30 ? 30 : (int)how.n, how.s);
}

/* Reads a part of which the headers and the data are s. */
static ggl_status read_part(multipart_part *p, ggl_str s, size_t k, ggl_error *err) {
    size_t at = 0;
    bool has_disposition = false;
    ggl_status st = GGL_OK;
    *p = (multipart_part){0};
    while (st == GGL_OK) {
        const size_t left = s.n - at, most = MULTIPART_HEADER - at;
        const char *end = ggl_find_bytes(s.s + at, left < most ? left : most, "\r\n", 2);
        if (!end && left > most)
            return ggl_fail(err, GGL_LIMIT, "the form's part %zu has headers of more than %d bytes",
                            k, (int)MULTIPART_HEADER);
        if (!end)
            return ggl_fail(err, GGL_FORMAT,
                            "the form's part %zu has no empty line after its headers", k);
        const ggl_str line = {s.s + at, (size_t)(end - s.s) - at};
        at += line.n + 2;
        if (line.n == 0)
            break;
        st = read_header(p, line, k, &has_disposition, err);
    }
    p->data = (ggl_str){s.s + at, s.n - at};
    if (st == GGL_OK && !has_disposition)
        st = ggl_fail(err, GGL_FORMAT, "the form's part %zu has no Content-Disposition", k);
    return st;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* A line that separates parts. */
typedef struct border {
    size_t begin, end; /* with the line breaks around it */
    bool is_last;
} border;

/* Finds the first border from `at` on. A line that only begins with the boundary is data. */
static bool find_border(border *b, ggl_str mark, ggl_str body, size_t at) {
    for (;;) {
        /* the body may begin with a border, which has no line break before it */
        const bool is_first =
            at == 0 && body.n + 2 >= mark.n && memcmp(body.s, mark.s + 2, mark.n - 2) == 0;
        const char *found =
            is_first ? body.s : ggl_find_bytes(body.s + at, body.n - at, mark.s, mark.n);
        if (!found)
            return false;
        b->begin = (size_t)(found - body.s);
        b->end = b->begin + mark.n - (is_first ? 2 : 0);
        at = b->end;
        b->is_last = body.n - at >= 2 && memcmp(body.s + at, "--", 2) == 0;
        if (b->is_last)
            return true;
        while (b->end < body.n && is_blank(body.s[b->end]))
            b->end++;
        if (body.n - b->end >= 2 && memcmp(body.s + b->end, "\r\n", 2) == 0) {
            b->end += 2;
            return true;
        }
    }
}

ggl_status multipart_read(multipart_part *part, size_t most, size_t *n, const char *boundary,
                          ggl_str body, ggl_error *err) {
    char text[MULTIPART_BOUNDARY + 8];
    const ggl_str mark = {
        text, (size_t)snprintf(text, sizeof text, "\r\n--%.*s", MULTIPART_BOUNDARY, boundary)};
    border b, next;
    ggl_status st = GGL_OK;
    *n = 0;
    if (!find_border(&b, mark, body, 0))
        return ggl_fail(err, GGL_FORMAT,
                        "the form's body does not have the boundary that the Content-Type names");
    for (; st == GGL_OK && !b.is_last; b = next) {
        /* the line break that ends a border may begin the next one: a part without a byte */
        if (!find_border(&next, mark, body, b.end - 2))
            return ggl_fail(err, GGL_FORMAT,
                            "the form's body ends in part %zu, before its last boundary", *n + 1);
        if (*n == most)
            return ggl_fail(err, GGL_LIMIT, "the form has more than %zu parts", most);
        const size_t begin = b.end < next.begin ? b.end : next.begin;
        st = read_part(&part[*n], (ggl_str){body.s + begin, next.begin - begin}, *n + 1, err);
        *n += st == GGL_OK;
    }
    return st;
}

bool multipart_find(ggl_str *data, const char *type, ggl_str body, const char *name) {
    char boundary[MULTIPART_BOUNDARY + 1];
    multipart_part part[MULTIPART_MOST];
    size_t n = 0;
    ggl_error unread; /* who reads the form says what is wrong with it */
    if (multipart_boundary(type, boundary, &unread) != GGL_OK ||
        multipart_read(part, MULTIPART_MOST, &n, boundary, body, &unread) != GGL_OK)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ggl_str_is(part[i].name, name)) {
            *data = part[i].data;
            return true;
        }
    return false;
}
