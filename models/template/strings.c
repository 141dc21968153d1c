#include "strings.h"

#include <string.h>

#include "ggl/internal/text.h"
#include "origin.h"
#include "text/unicode.h"

bool llm_tv_is_space(uint32_t c) {
    return (c >= 0x1c && c <= 0x1f) || (llm_unicode_properties(c) & UNICODE_WHITE);
}

static bool in_set(tv_heap *h, uint32_t c, const ggl_str *chars) {
    tv_scan(h, chars ? chars->n : 0);
    if (!chars)
        return llm_tv_is_space(c);
    for (size_t i = 0; i < chars->n;)
        if (llm_tv_next_char(*chars, &i) == c)
            return true;
    return false;
}

/* Returns the offset of the character that ends at `end`. */
static size_t before(ggl_str s, size_t end) {
    size_t i = end - 1;
    while (i > 0 && end - i < 4 && ((unsigned char)s.s[i] & 0xc0) == 0x80)
        i--;
    size_t next = i;
    llm_tv_next_char(s, &next);
    return next == end ? i : end - 1;
}

ggl_str llm_tv_strip(tv_heap *h, ggl_str s, const ggl_str *chars, int sides) {
    size_t first = 0, end = s.n;
    for (size_t next = 0; (sides & TV_LEFT) && first < end; first = next)
        if (!in_set(h, llm_tv_next_char(s, &next), chars))
            break;
    while ((sides & TV_RIGHT) && end > first) {
        size_t at = before(s, end), next = at;
        if (!in_set(h, llm_tv_next_char(s, &next), chars))
            break;
        end = at;
    }
    return (ggl_str){s.s + first, end - first};
}

/* --- letters ---------------------------------------------------------------------------------- */

static void put_lower(tv_heap *h, tv_text *t, uint32_t c) {
    uint32_t mark;
    llm_tv_put_char(h, t, llm_unicode_lower(c, &mark));
    if (mark)
        llm_tv_put_char(h, t, mark);
}

/* Returns c in upper case, or c: the table of lower cases, read backwards. */
static uint32_t upper_of(tv_heap *h, uint32_t c) {
    if (c < 0x80)
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    llm_tv_step(h, 8);
    for (int i = 0; i < llm_n_unicode_lower_ranges; i++) {
        const struct unicode_lower *r = &llm_unicode_lower_ranges[i];
        const uint32_t up = c - (uint32_t)r->delta;
        if (up >= r->first && up <= r->last && (up - r->first) % r->step == 0 && r->first >= 0x80)
            return up;
    }
    return c;
}

/* U+00DF becomes two letters, the second in lower case if it begins a word. */
static void put_upper(tv_heap *h, tv_text *t, uint32_t c, bool first_only) {
    if (c == 0xdf)
        llm_tv_puts(h, t, first_only ? "Ss" : "SS");
    else
        llm_tv_put_char(h, t, upper_of(h, c));
}

bool llm_tv_is_case(tv_heap *h, ggl_str s, bool upper) {
    bool any = false;
    tv_scan(h, s.n);
    for (size_t i = 0; i < s.n;) {
        uint32_t mark, c = llm_tv_next_char(s, &i);
        const bool up = llm_unicode_lower(c, &mark) != c, low = c == 0xdf || upper_of(h, c) != c;
        if (upper ? low : up)
            return false;
        any = any || up || low;
    }
    return any;
}

/* How a character is changed. */
typedef enum change { LOWER, UPPER, FIRST } change;

/* Appends the character of s at *i, and moves *i past it. Returns it. */
static uint32_t put_changed(tv_heap *h, tv_text *t, ggl_str s, size_t *i, change how) {
    const size_t from = *i, before = t->n;
    const uint32_t c = llm_tv_next_char(s, i);
    if (how == LOWER)
        put_lower(h, t, c);
    else
        put_upper(h, t, c, how == FIRST);
    llm_tv_derived(h, t->s + before, t->n - before, s.s + from);
    return c;
}

ggl_str llm_tv_lower(tv_heap *h, ggl_str s) {
    tv_text t = {0};
    for (size_t i = 0; i < s.n;)
        (void)put_changed(h, &t, s, &i, LOWER);
    return llm_tv_done(&t);
}

ggl_str llm_tv_upper(tv_heap *h, ggl_str s) {
    tv_text t = {0};
    for (size_t i = 0; i < s.n;)
        (void)put_changed(h, &t, s, &i, UPPER);
    return llm_tv_done(&t);
}

ggl_str llm_tv_capitalize(tv_heap *h, ggl_str s, bool (*begins)(uint32_t before), bool title) {
    tv_text t = {0};
    bool first = true;
    for (size_t i = 0; i < s.n;) {
        const uint32_t c = put_changed(h, &t, s, &i, !first ? LOWER : title ? FIRST : UPPER);
        first = begins && begins(c);
    }
    return llm_tv_done(&t);
}

/* --- parts ------------------------------------------------------------------------------------ */

static void push(tv_heap *h, tv list, ggl_str s, size_t from, size_t to) {
    llm_tv_push(h, list, tv_str((ggl_str){s.s + from, to - from}));
}

static tv split_space(tv_heap *h, ggl_str s, int64_t most) {
    tv list = llm_tv_new_list(h, TV_LIST);
    s = llm_tv_strip(h, s, NULL, TV_LEFT);
    for (size_t i = 0; i < s.n;) {
        size_t from = i, next = i;
        if (most >= 0 && (int64_t)list.list->n == most) {
            push(h, list, s, from, s.n);
            break;
        }
        while (i < s.n && !llm_tv_is_space(llm_tv_next_char(s, &next)))
            i = next;
        push(h, list, s, from, i);
        for (next = i; i < s.n && llm_tv_is_space(llm_tv_next_char(s, &next));)
            i = next;
    }
    return list;
}

tv llm_tv_split(tv_heap *h, ggl_str s, const ggl_str *separator, int64_t most) {
    tv_scan(h, s.n);
    if (!separator)
        return split_space(h, s, most);
    if (separator->n == 0)
        llm_tv_fail(h, GGL_FORMAT, "split: the separator is empty");
    tv list = llm_tv_new_list(h, TV_LIST);
    size_t from = 0;
    for (const char *p; most < 0 || (int64_t)list.list->n < most;
         from = (size_t)(p - s.s) + separator->n) {
        p = s.n > from ? ggl_find_bytes(s.s + from, s.n - from, separator->s, separator->n) : NULL;
        if (!p)
            break;
        push(h, list, s, from, (size_t)(p - s.s));
    }
    push(h, list, s, from, s.n);
    return list;
}

tv llm_tv_split_lines(tv_heap *h, ggl_str s, bool keep_ends) {
    tv list = llm_tv_new_list(h, TV_LIST);
    tv_scan(h, s.n);
    for (size_t i = 0, from = 0; i < s.n; from = i) {
        while (i < s.n && s.s[i] != '\n' && s.s[i] != '\r')
            i++;
        const size_t end = i;
        if (i < s.n)
            i += s.s[i] == '\r' && i + 1 < s.n && s.s[i + 1] == '\n' ? 2 : 1;
        push(h, list, s, from, keep_ends ? i : end);
    }
    return list;
}

ggl_str llm_tv_replace(tv_heap *h, ggl_str s, ggl_str from, ggl_str to, int64_t most) {
    tv_text t = {0};
    size_t i = 0;
    tv_scan(h, s.n);
    for (; most != 0; most -= most > 0) {
        size_t at = i;
        if (from.n == 0) { /* between all characters, and at both ends */
            if (i > s.n)
                break;
            llm_tv_put(h, &t, to.s, to.n);
            if (i == s.n) {
                i++;
                break;
            }
            llm_tv_next_char(s, &at);
            llm_tv_put(h, &t, s.s + i, at - i);
            i = at;
            continue;
        }
        const char *p = s.n > i ? ggl_find_bytes(s.s + i, s.n - i, from.s, from.n) : NULL;
        if (!p)
            break;
        llm_tv_put(h, &t, s.s + i, (size_t)(p - s.s) - i);
        llm_tv_put(h, &t, to.s, to.n);
        i = (size_t)(p - s.s) + from.n;
    }
    if (i < s.n)
        llm_tv_put(h, &t, s.s + i, s.n - i);
    return llm_tv_done(&t);
}

ggl_str llm_tv_escape(tv_heap *h, ggl_str s) {
    static const char special[] = "&<>\"'";
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    tv_text t = {0};
    for (size_t i = 0; i < s.n; i++) {
        const char *at = s.s[i] ? strchr(special, s.s[i]) : NULL;
        if (at)
            llm_tv_puts(h, &t, entity[at - special]);
        else
            llm_tv_put(h, &t, &s.s[i], 1);
    }
    return llm_tv_done(&t);
}

ggl_str llm_tv_join(tv_heap *h, const tv_list *list, ggl_str separator) {
    tv_text t = {0};
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            llm_tv_put(h, &t, separator.s, separator.n);
        llm_tv_put_str(h, &t, list->at[i]);
    }
    return llm_tv_done(&t);
}
