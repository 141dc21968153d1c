/* The line editor, driven by bytes, on a small model of a terminal: what the text is, and what the screen shows. */
#include "test.h"

#include "common/char_width.h"
#include "common/line_edit.h"

/* --- a terminal ------------------------------------------------------------------------------- */

enum { COLS = 100, ROWS = 40 };

typedef struct cell {
    uint32_t c; /* 0: the second column of a wide character, or never written */
    bool wide;
} cell;

typedef struct screen {
    cell at[ROWS][COLS];
    bool wrapped[ROWS]; /* the row goes on in the next one */
    int cols, rows, row, col;
    bool pending; /* the last column was written; the next character wraps */
    int bells;
} screen;

static void scroll(screen *s) {
    memmove(s->at, s->at + 1, sizeof *s->at * (size_t)(s->rows - 1));
    memmove(s->wrapped, s->wrapped + 1, sizeof *s->wrapped * (size_t)(s->rows - 1));
    memset(s->at[s->rows - 1], 0, sizeof *s->at);
    s->wrapped[s->rows - 1] = false;
}

static void line_feed(screen *s) {
    if (s->row + 1 < s->rows)
        s->row++;
    else
        scroll(s);
}

static void put_char(screen *s, uint32_t c) {
    const int w = char_width(c);
    if (w == 0)
        return; /* joins the cell before it */
    if (s->pending || s->col + w > s->cols) {
        s->wrapped[s->row] = true;
        line_feed(s);
        s->col = 0;
        s->pending = false;
    }
    s->at[s->row][s->col] = (cell){c, w == 2};
    if (w == 2)
        s->at[s->row][s->col + 1] = (cell){0, false};
    s->col += w;
    if (s->col == s->cols) {
        s->col--;
        s->pending = true;
    }
}

static void erase_below(screen *s) {
    for (int r = s->row; r < s->rows; r++) {
        memset(s->at[r] + (r == s->row ? s->col : 0), 0,
               sizeof(cell) * (size_t)(r == s->row ? s->cols - s->col : s->cols));
        s->wrapped[r] = false;
    }
    if (s->row > 0 && s->col == 0)
        s->wrapped[s->row - 1] = false;
}

/* Runs the sequence after "ESC ["; returns its bytes. */
static size_t do_csi(screen *s, const char *p, size_t n) {
    size_t i = 0;
    int number = 0;
    while (i < n && (unsigned char)p[i] < 0x40) {
        number = p[i] >= '0' && p[i] <= '9' ? number * 10 + (p[i] - '0') : number;
        i++;
    }
    const int by = number ? number : 1;
    s->pending = p[i] == 'm' || p[i] == 'h' || p[i] == 'l' ? s->pending : false;
    if (p[i] == 'A')
        s->row = s->row > by ? s->row - by : 0;
    else if (p[i] == 'C')
        s->col = s->col + by < s->cols ? s->col + by : s->cols - 1;
    else if (p[i] == 'J' && number == 0)
        erase_below(s);
    else if (p[i] == 'J')
        memset(s->at, 0, sizeof s->at);
    else if (p[i] == 'H')
        s->row = s->col = 0;
    else
        CHECK_MSG(p[i] == 'm' || p[i] == 'h' || p[i] == 'l', "an unknown sequence CSI %c", p[i]);
    return i + 1;
}

static void show(screen *s, const char *p, size_t n) {
    for (size_t i = 0; i < n;) {
        if (p[i] == '\033' && i + 2 < n && p[i + 1] == '[') {
            i += 2 + do_csi(s, p + i + 2, n - i - 2);
        } else if (p[i] == '\r') {
            s->col = 0;
            s->pending = false;
            i++;
        } else if (p[i] == '\n') {
            line_feed(s);
            s->pending = false;
            i++;
        } else if (p[i] == '\a') {
            s->bells++;
            i++;
        } else {
            uint32_t c;
            i += char_read(p + i, n - i, &c);
            put_char(s, c);
        }
    }
}

/* Gives the terminal another width, as those do that wrap rows again. The cursor keeps its character. */
static void reflow(screen *s, int cols) {
    screen *old = malloc(sizeof *old);
    *old = *s;
    memset(s->at, 0, sizeof s->at);
    memset(s->wrapped, 0, sizeof s->wrapped);
    s->cols = cols;
    s->row = s->col = 0;
    s->pending = false;
    int last = old->rows - 1, row = 0, col = 0;
    while (last > old->row && !memchr(old->at[last], 1, 1) && old->at[last][0].c == 0)
        last--;
    for (int r = 0; r <= last; r++) {
        int end = old->cols;
        while (end > 0 && old->at[r][end - 1].c == 0 && !(end > 1 && old->at[r][end - 2].wide))
            end--;
        for (int k = 0; k < end || (r == old->row && k <= old->col); k++) {
            if (r == old->row && k == old->col) {
                const bool next = s->pending && k < end;
                row = s->row + next;
                col = next ? 0 : s->col + s->pending;
            }
            if (k < end && old->at[r][k].c)
                put_char(s, old->at[r][k].c);
            else if (k < end && !(k > 0 && old->at[r][k - 1].wide))
                put_char(s, ' ');
        }
        if (!old->wrapped[r] && r < last) {
            s->col = 0;
            s->pending = false;
            line_feed(s);
        }
    }
    s->row = row;
    s->col = col < cols ? col : cols - 1;
    s->pending = false;
    free(old);
}

/* Returns a row as text, without spaces at its end. */
static const char *row_text(const screen *s, int r) {
    static char text[4][4 * COLS + 1];
    static int k;
    char *out = text[k = (k + 1) % 4];
    size_t n = 0, used = 0;
    for (int i = 0; i < s->cols; i++) {
        const uint32_t c = s->at[r][i].c;
        if (i > 0 && s->at[r][i - 1].wide)
            continue;
        if (c < 0x80)
            out[n++] = c ? (char)c : ' ';
        else if (c < 0x800)
            n += (size_t)sprintf(out + n, "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)));
        else if (c < 0x10000)
            n += (size_t)sprintf(out + n, "%c%c%c", (char)(0xe0 | c >> 12),
                                 (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63)));
        else
            n += (size_t)sprintf(out + n, "%c%c%c%c", (char)(0xf0 | c >> 18),
                                 (char)(0x80 | (c >> 12 & 63)), (char)(0x80 | (c >> 6 & 63)),
                                 (char)(0x80 | (c & 63)));
        used = c && c != ' ' ? n : used;
    }
    out[used] = '\0';
    return out;
}

/* --- an editor on it ---------------------------------------------------------------------------- */

typedef struct desk {
    line_editor *e;
    screen s;
    line_result result;
} desk;

static void draw(desk *d) {
    size_t n;
    const char *s = line_editor_draw(d->e, &n);
    show(&d->s, s, n);
}

static void begin_at(desk *d, const line_editor_params *p, int cols, int rows) {
    *d = (desk){.s = {.cols = cols, .rows = rows}, .e = line_editor_new(p)};
    line_editor_resize(d->e, cols, rows);
    line_editor_begin(d->e, "\033[2m7\033[0m > ");
    draw(d);
}

static void type_n(desk *d, const char *keys, size_t n) {
    size_t used = 0;
    d->result = line_editor_feed(d->e, keys, n, &used);
    draw(d);
}

static void type(desk *d, const char *keys) {
    type_n(d, keys, strlen(keys));
}

static const char *text(const desk *d) {
    size_t n;
    return line_editor_text(d->e, &n);
}

static void end(desk *d) {
    line_editor_free(d->e);
    d->e = NULL;
}

#define LEFT  "\033[D"
#define RIGHT "\033[C"
#define UP    "\033[A"
#define DOWN  "\033[B"

/* --- keys -------------------------------------------------------------------------------------- */

TEST(keys) {
    static const struct {
        const char *keys, *text;
        int col; /* of the cursor, from the text's beginning */
    } cases[] = {
        {"Hello", "Hello", 5},
        {"Helo" LEFT "l", "Hello", 4},
        {"ello\001H", "Hello", 1},
        {"ello\033[HH\033[F!", "Hello!", 6},
        {"ello\033OHH\033OF!", "Hello!", 6},
        {"xHello\033[1~\033[3~", "Hello", 0},
        {"Hellox\177", "Hello", 5},
        {"Hello there\027you", "Hello you", 9},
        {"one two\025three", "three", 5},
        {"one two\033b\013three", "one three", 9},
        {"one two\033b\013\001\031 ", "two one ", 4},
        {"one two three\033b\033b\033dX", "one X three", 5},
        {"one two-three\033\177X", "one two-X", 9},
        {"one two\001\033f\033[1;5CX", "one twoX", 8},
        {"ab\024", "ba", 2},
        {"abc" LEFT "\024", "acb", 3},
        {"\xc3\xa4\xc3\xb6" LEFT "\177", "\xc3\xb6", 0},
        {"\xe6\x97\xa5\xe6\x9c\xac" LEFT "x", "\xe6\x97\xa5x\xe6\x9c\xac", 3},
        {"e\xcc\x81x" LEFT LEFT "\033[3~", "x", 0}, /* a mark goes with its character */
        {"a\xff"
         "b\xe6\x97"
         "c",
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"
         "c",
         5},
        {"a\033[99~b\033[1;2Zc\033Zd\033[[Ae", "abcde", 5},
        {"ab\004\002\004", "a", 1},
        {"a\fb", "ab", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        desk d;
        begin_at(&d, &(line_editor_params){0}, 80, 24);
        type(&d, cases[i].keys);
        CHECK_MSG(strcmp(text(&d), cases[i].text) == 0, "case %zu: '%s', not '%s'", i, text(&d),
                  cases[i].text);
        CHECK_MSG(d.s.col == 4 + cases[i].col, "case %zu: the cursor is in column %d, not %d", i,
                  d.s.col, 4 + cases[i].col);
        end(&d);
        begin_at(&d, &(line_editor_params){0}, 80, 24); /* the same, a byte at a time */
        for (const char *p = cases[i].keys; *p; p++)
            type_n(&d, p, 1);
        CHECK_STR(text(&d), cases[i].text);
        end(&d);
    }
}

TEST(results) {
    static const struct {
        const char *keys;
        line_result result;
        const char *text;
    } cases[] = {
        {"Hi\r", LINE_DONE, "Hi"},
        {"\r", LINE_DONE, ""},
        {"\004", LINE_END, ""},
        {"Hi\003", LINE_INTERRUPT, "Hi"},
        {"Hi\032", LINE_SUSPEND, "Hi"},
        {"one\\\rtwo\r", LINE_DONE, "one\ntwo"},
        {"one\ntwo\r", LINE_DONE, "one\ntwo"},
        {"one\033\rtwo\r", LINE_DONE, "one\ntwo"},
        {"one\033[13;2utwo\r", LINE_DONE, "one\ntwo"},
        {"\\x" LEFT "\r", LINE_DONE, "\\x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        desk d;
        begin_at(&d, &(line_editor_params){0}, 80, 24);
        type(&d, cases[i].keys);
        CHECK_INT(d.result, cases[i].result);
        CHECK_STR(text(&d), cases[i].text);
        end(&d);
    }
    desk d;
    begin_at(&d, &(line_editor_params){.multiline = true}, 80, 24);
    type(&d, "one\rtwo\\\r");
    CHECK_INT(d.result, LINE_DONE);
    CHECK_STR(text(&d), "one\ntwo");
    end(&d);
}

TEST(bytes_after_a_text_stay) {
    desk d;
    size_t used;
    begin_at(&d, &(line_editor_params){0}, 80, 24);
    CHECK_INT(line_editor_feed(d.e, "one\rtwo\r", 8, &used), LINE_DONE);
    CHECK_INT(used, 4);
    end(&d);
}

TEST(pasted_text_is_taken_literally) {
    desk d;
    begin_at(&d, &(line_editor_params){0}, 80, 24);
    type(&d, "ac" LEFT "\033[200~one\r\ntwo\rthree\n\tfour\003\004\033[2J\\\033[201~b");
    CHECK_INT(d.result, LINE_MORE);
    CHECK_STR(text(&d), "aone\ntwo\nthree\n\tfour\\bc");
    type(&d, "\r");
    CHECK_INT(d.result, LINE_DONE);
    end(&d);
}

/* The mark at the end of a pasted text may come in two pieces, or not at all. */
TEST(pasted_text_ends) {
    desk d;
    begin_at(&d, &(line_editor_params){0}, 80, 24);
    type(&d, "\033[200~one\033[20");
    line_editor_idle(d.e);
    type(&d, "1~two\r");
    CHECK_STR(text(&d), "onetwo");
    CHECK_INT(d.result, LINE_DONE);
    end(&d);
    begin_at(&d, &(line_editor_params){0}, 80, 24);
    type(&d, "\033[200~one");
    line_editor_idle(d.e);
    type(&d, "\003");
    CHECK_INT(d.result, LINE_INTERRUPT);
    end(&d);
}

/* Terminals obey U+0080 to U+009F as they obey escape sequences. */
TEST(controls_are_not_drawn) {
    desk d;
    begin_at(&d, &(line_editor_params){0}, 80, 24);
    type(&d, "\033[200~a\xc2\x9b"
             "2Jb\033[201~");
    CHECK_STR(text(&d), "a\xc2\x9b"
                        "2Jb");
    CHECK_STR(row_text(&d.s, 0), "7 > a?2Jb");
    end(&d);
}

TEST(lines_of_a_text) {
    desk d;
    begin_at(&d, &(line_editor_params){0}, 80, 24);
    type(&d, "first\nsecond line\nx" UP UP "|");
    CHECK_STR(text(&d), "f|irst\nsecond line\nx");
    type(&d, DOWN "|" DOWN "|");
    CHECK_STR(text(&d), "f|irst\nse|cond line\nx|");
    type(&d, UP "\005\013"); /* joins it with the next */
    CHECK_STR(text(&d), "f|irst\nse|cond linex|");
    CHECK_STR(row_text(&d.s, 0), "7 > f|irst");
    CHECK_STR(row_text(&d.s, 1), "  se|cond linex|");
    end(&d);
}

/* --- history, search, completion --------------------------------------------------------------- */

TEST(history) {
    line_history *h = line_history_new(NULL, 3);
    desk d;
    const char *const lines[] = {"zero", "one", "two", "two", "", "three"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        line_history_add(h, lines[i]);
    CHECK_INT(line_history_n(h), 3);
    begin_at(&d, &(line_editor_params){.history = h}, 80, 24);
    type(&d, "new" UP);
    CHECK_STR(text(&d), "three");
    type(&d, UP UP UP UP);
    CHECK_STR(text(&d), "one");
    CHECK_INT(d.s.bells, 2);
    type(&d, DOWN "x" DOWN DOWN);
    CHECK_STR(text(&d), "new"); /* what was entered is kept */
    type(&d, DOWN "\022o");
    CHECK_STR(text(&d), "two");
    CHECK_STR(row_text(&d.s, 0), "search 'o': two");
    CHECK_INT(d.s.col, 14);
    type(&d, "\022");
    CHECK_STR(text(&d), "one");
    type(&d, "\007");
    CHECK_STR(text(&d), "new");
    CHECK_STR(row_text(&d.s, 0), "7 > new");
    type(&d, "\022tw\177h!");
    CHECK_STR(row_text(&d.s, 0), "nothing found: search 'th!': three");
    type(&d, "\177\r");
    CHECK_INT(d.result, LINE_DONE);
    CHECK_STR(text(&d), "three");
    end(&d);
    line_history_free(h);
}

static void complete(void *ctx, const char *s, size_t cursor, line_words *w) {
    static const char *const words[] = {"/save ", "/set ",    "/stats ", "/system ",
                                        "/quit ", "\xc3\xa4", "\xc3\xb6"};
    (void)ctx;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(s, words[i], cursor) == 0)
            line_words_add(w, words[i]);
}

TEST(completion) {
    desk d;
    begin_at(&d, &(line_editor_params){.complete = complete}, 80, 24);
    type(&d, "/q\t");
    CHECK_STR(text(&d), "/quit ");
    type(&d, "\025/s\t");
    CHECK_STR(text(&d), "/s");
    CHECK_INT(d.s.bells, 1);
    type(&d, "\t");
    CHECK_STR(row_text(&d.s, 0), "7 > /s");
    CHECK_STR(row_text(&d.s, 1), "/save     /set      /stats    /system");
    CHECK_STR(row_text(&d.s, 2), "7 > /s");
    type(&d, "y\t");
    CHECK_STR(text(&d), "/system ");
    CHECK_STR(row_text(&d.s, 2), "7 > /system");
    type(&d, "\025\t"); /* half of a character is common to some */
    CHECK_STR(text(&d), "");
    end(&d);
}

static void complete_hostile(void *ctx, const char *s, size_t cursor, line_words *w) {
    (void)ctx, (void)s, (void)cursor;
    line_words_add(w, "a\033]0;x\a");
    line_words_add(w, "b\xff\xc2\x9b");
}

TEST(names_of_files_are_not_obeyed) {
    desk d;
    begin_at(&d, &(line_editor_params){.complete = complete_hostile}, 80, 24);
    type(&d, "\t\t");
    CHECK_STR(row_text(&d.s, 1), "a?]0;x?  b??");
    end(&d);
}

/* --- the screen -------------------------------------------------------------------------------- */

TEST(long_lines_wrap) {
    desk d;
    begin_at(&d, &(line_editor_params){0}, 20, 10);
    type(&d, "0123456789abcdef"); /* a full row */
    CHECK_STR(row_text(&d.s, 0), "7 > 0123456789abcdef");
    CHECK(d.s.row == 1 && d.s.col == 0);
    type(&d, "ghi" LEFT LEFT LEFT "X");
    CHECK_STR(row_text(&d.s, 0), "7 > 0123456789abcdef");
    CHECK_STR(row_text(&d.s, 1), "Xghi");
    type(&d, "\001\xe6\x97\xa5");
    CHECK_STR(row_text(&d.s, 0), "7 > \xe6\x97\xa5"
                                 "0123456789abcd");
    CHECK_STR(row_text(&d.s, 1), "efXghi");
    type(&d, "\033[F\r");
    CHECK(d.s.row == 2 && d.s.col == 0);
    end(&d);
}

TEST(more_rows_than_the_screen) {
    desk d;
    char line[16];
    begin_at(&d, &(line_editor_params){0}, 20, 5);
    for (int i = 0; i < 12; i++) {
        snprintf(line, sizeof line, "%sline %d", i ? "\n" : "", i);
        type(&d, line);
    }
    CHECK_STR(row_text(&d.s, 0), "  line 7");
    CHECK_STR(row_text(&d.s, 4), "  line 11");
    type(&d, UP UP UP UP UP UP UP UP UP UP UP);
    CHECK_STR(row_text(&d.s, 0), "7 > line 0");
    CHECK_STR(row_text(&d.s, 4), "  line 4");
    CHECK(d.s.row == 0);
    type(&d, DOWN DOWN DOWN DOWN DOWN "!");
    CHECK_STR(row_text(&d.s, 4), "  line 5!");
    type(&d, "\r");
    CHECK_STR(row_text(&d.s, 3), "  line 11");
    CHECK(d.s.row == 4);
    end(&d);
}

/* A terminal of one column, or of none, is no reason to fail. */
TEST(tiny_terminals) {
    for (int cols = 0; cols < 12; cols++)
        for (int rows = 0; rows < 4; rows++) {
            desk d;
            begin_at(&d, &(line_editor_params){0}, 80, 24);
            line_editor_resize(d.e, cols, rows);
            size_t used, n;
            (void)line_editor_feed(d.e, "ab\xe6\x97\xa5\ncd\001\033[A\tx", 14, &used);
            (void)line_editor_draw(d.e, &n);
            CHECK(n > 0);
            end(&d);
        }
}

/* Compares the whole screen with that of a new editor with the same text. */
static bool same_as_fresh(const desk *d) {
    desk f;
    size_t n;
    const char *s = line_editor_text(d->e, &n);
    begin_at(&f, &(line_editor_params){0}, d->s.cols, d->s.rows);
    type(&f, "\033[200~");
    type_n(&f, s, n);
    type(&f, "\033[201~");
    bool same = true;
    for (int r = 0; r < d->s.rows && same; r++)
        same = strcmp(row_text(&d->s, r), row_text(&f.s, r)) == 0;
    end(&f);
    return same;
}

/* Random keys and sizes: what is drawn step by step is what a fresh drawing shows, and typing where
 * the cursor is drawn changes the text there. */
TEST(drawing_step_by_step) {
    static const char *const keys[] = {"a",          "bc ",
                                       "\xc3\xa4",   "\xe6\x97\xa5",
                                       "e\xcc\x81",  "\n",
                                       LEFT,         RIGHT,
                                       UP,           DOWN,
                                       "\001",       "\005",
                                       "\177",       "\027",
                                       "\031",       "\033b",
                                       "\033f",      "\024",
                                       "\013",       "\033[3~",
                                       "0123456789", "\xf0\x9f\x98\x80"};
    enum { N_KEYS = sizeof keys / sizeof *keys };
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t random = seed;
        desk d;
        begin_at(&d, &(line_editor_params){0}, 8 + (int)(test_random(&random) % 30), 38);
        for (int i = 0; i < 60; i++) {
            size_t n;
            (void)line_editor_text(d.e, &n);
            const uint64_t r = test_random(&random);
            if (r % 16 == 0) {
                const int cols = 8 + (int)(r >> 8 & 63);
                reflow(&d.s, cols);
                line_editor_resize(d.e, cols, d.s.rows);
                draw(&d);
            }
            if (n > 60)
                break;
            type(&d, keys[(r >> 24) % N_KEYS]);
            if (!CHECK_MSG(same_as_fresh(&d),
                           "seed %" PRIu64 ", key %d: the screen is not that of '%s'", seed, i,
                           text(&d)))
                return end(&d);
        }
        end(&d);
    }
}

/* Whatever a terminal sends, the text is valid UTF-8 without control characters but tabs and newlines. */
TEST(any_bytes) {
    static const char often[] = "\033[O;12~ABCDHF\t\r\n\022\031\013\177\xe6\x97\xa5u";
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t random = seed;
        line_history *h = line_history_new(NULL, 5);
        line_editor *e = line_editor_new(&(line_editor_params){.history = h, .complete = complete});
        line_editor_resize(e, (int)(test_random(&random) % 90), (int)(test_random(&random) % 30));
        line_editor_begin(e, "> ");
        for (int i = 0; i < 300; i++) {
            const uint64_t r = test_random(&random);
            const char byte = r & 1 ? often[(r >> 8) % (sizeof often - 1)] : (char)(r >> 8);
            size_t used, n, n_drawn;
            const line_result result = line_editor_feed(e, &byte, 1, &used);
            (void)line_editor_draw(e, &n_drawn);
            const char *text = line_editor_text(e, &n);
            bool good = used == 1 && strlen(text) == n;
            uint32_t c = 0;
            for (size_t k = 0; k < n && good; good = c >= 32 || c == '\t' || c == '\n') {
                const size_t len = char_read(text + k, n - k, &c);
                good = len > 1 || c < 0x80;
                k += len;
            }
            if (!CHECK_MSG(good, "seed %" PRIu64 ", byte %d: the text is '%s'", seed, i, text))
                break;
            if (r % 50 == 0)
                line_editor_idle(e);
            if (result != LINE_MORE && result != LINE_SUSPEND) {
                line_history_add(h, text);
                line_editor_begin(e, "> ");
            }
        }
        line_editor_free(e);
        line_history_free(h);
    }
}

/* --- widths ------------------------------------------------------------------------------------ */

TEST(widths) {
    static const struct {
        uint32_t c;
        int width;
    } cases[] = {{'a', 1},     {0xe9, 1},   {0x300, 0},  {0x301, 0},   {0x200d, 0},  {0x1100, 2},
                 {0x1161, 0},  {0x3042, 2}, {0x4e00, 2}, {0xac00, 2},  {0xff01, 2},  {0xff71, 1},
                 {0x1f600, 2}, {0x2713, 1}, {0xfe0f, 0}, {0x20000, 2}, {0xe0100, 0}, {0x10ffff, 1},
                 {0xad, 1},    {0x2028, 1}, {0x5d0, 1},  {0x0e31, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_MSG(char_width(cases[i].c) == cases[i].width, "U+%04X: %d columns, not %d",
                  cases[i].c, char_width(cases[i].c), cases[i].width);
}
