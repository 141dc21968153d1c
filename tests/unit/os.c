/* What the operating system does for all else, on each system: threads, clocks, streams to memory, and strings. */
#include <stdatomic.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_attempt.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_socket.h"
#include "ggl/internal/os_stream.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/text.h"
#include "test.h"

/* The search for systems without memmem, under another name. */
#define ggl_find_bytes find_two_way
void *find_two_way(const void *s, size_t n, const void *what, size_t n_what);
#include "base/os_text_windows.c"
#undef ggl_find_bytes

enum { N_THREADS = 4, N_TURNS = 20000, MS = 1000000 };

/* --- threads ---------------------------------------------------------------------------------- */

typedef struct shared {
    os_mutex lock;
    os_cond changed;
    long count;
    int n_waiting, n_woken;
    bool open;
    uintptr_t number[N_THREADS];
} shared;

static os_mutex static_lock = OS_MUTEX_INIT;
static long static_count;

static void *count(void *arg) {
    shared *s = arg;
    for (int i = 0; i < N_TURNS; i++) {
        ggl_os_mutex_lock(&s->lock);
        s->count++;
        ggl_os_mutex_unlock(&s->lock);
        ggl_os_mutex_lock(&static_lock);
        static_count++;
        ggl_os_mutex_unlock(&static_lock);
        if (i % 1000 == 0)
            ggl_os_thread_yield();
    }
    return NULL;
}

static void shared_init(shared *s) {
    *s = (shared){0};
    ggl_os_mutex_init(&s->lock);
    ggl_os_cond_init(&s->changed);
}

static void shared_fini(shared *s) {
    ggl_os_cond_destroy(&s->changed);
    ggl_os_mutex_destroy(&s->lock);
}

TEST(threads_exclude_each_other) {
    shared s;
    os_thread t[N_THREADS];
    shared_init(&s);
    for (int i = 0; i < N_THREADS; i++)
        REQUIRE(ggl_os_thread_start(&t[i], count, &s, 0));
    for (int i = 0; i < N_THREADS; i++)
        ggl_os_thread_join(t[i]);
    CHECK(s.count == (long)N_THREADS * N_TURNS);
    CHECK(static_count == (long)N_THREADS * N_TURNS);
    shared_fini(&s);
}

static void *try_it(void *arg) {
    shared *s = arg;
    s->open = ggl_os_mutex_try(&s->lock);
    if (s->open)
        ggl_os_mutex_unlock(&s->lock);
    return NULL;
}

TEST(a_mutex_is_tried) {
    shared s;
    os_thread t;
    shared_init(&s);
    ggl_os_mutex_lock(&s.lock);
    REQUIRE(ggl_os_thread_start(&t, try_it, &s, 0));
    ggl_os_thread_join(t);
    CHECK(!s.open);
    ggl_os_mutex_unlock(&s.lock);
    REQUIRE(ggl_os_thread_start(&t, try_it, &s, 0));
    ggl_os_thread_join(t);
    CHECK(s.open);
    shared_fini(&s);
}

static void *wait_for_open(void *arg) {
    shared *s = arg;
    ggl_os_mutex_lock(&s->lock);
    s->number[s->n_waiting++] = ggl_os_thread_number();
    while (!s->open)
        ggl_os_cond_wait(&s->changed, &s->lock);
    s->n_woken++;
    ggl_os_mutex_unlock(&s->lock);
    return NULL;
}

TEST(a_broadcast_wakes_all) {
    shared s;
    os_thread t[N_THREADS];
    shared_init(&s);
    for (int i = 0; i < N_THREADS; i++)
        REQUIRE(ggl_os_thread_start(&t[i], wait_for_open, &s, 0));
    for (bool all = false; !all; ggl_os_thread_yield()) {
        ggl_os_mutex_lock(&s.lock);
        all = s.n_waiting == N_THREADS;
        s.open = all;
        if (all)
            ggl_os_cond_broadcast(&s.changed);
        ggl_os_mutex_unlock(&s.lock);
    }
    for (int i = 0; i < N_THREADS; i++)
        ggl_os_thread_join(t[i]);
    CHECK(s.n_woken == N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        CHECK(s.number[i] != ggl_os_thread_number());
        for (int k = 0; k < i; k++)
            CHECK(s.number[i] != s.number[k]);
    }
    shared_fini(&s);
}

static void *open_late(void *arg) {
    shared *s = arg;
    ggl_os_sleep(5 * MS);
    ggl_os_mutex_lock(&s->lock);
    s->open = true;
    ggl_os_cond_signal(&s->changed);
    ggl_os_mutex_unlock(&s->lock);
    return NULL;
}

TEST(a_wait_has_a_deadline) {
    shared s;
    os_thread t;
    shared_init(&s);
    const int64_t deadline = ggl_os_clock() + 20 * MS;
    ggl_os_mutex_lock(&s.lock);
    CHECK(!ggl_os_cond_wait_until(&s.changed, &s.lock, ggl_os_clock() - 1));
    while (ggl_os_cond_wait_until(&s.changed, &s.lock, deadline))
        ;
    CHECK(ggl_os_clock() >= deadline);
    CHECK(!ggl_os_cond_wait_until(&s.changed, &s.lock, deadline)); /* it is over */
    REQUIRE(ggl_os_thread_start(&t, open_late, &s, 0));
    bool in_time = true;
    while (!s.open && in_time)
        in_time = ggl_os_cond_wait_until(&s.changed, &s.lock, INT64_MAX);
    CHECK(in_time && s.open);
    ggl_os_mutex_unlock(&s.lock);
    ggl_os_thread_join(t);
    shared_fini(&s);
}

static void *fill_stack(void *arg) {
    volatile char room[3 << 20];
    for (size_t i = 0; i < sizeof room; i += 1024)
        room[i] = (char)i;
    *(int *)arg = room[1024] + 1;
    return NULL;
}

TEST(a_stack_has_its_size) {
    os_thread t;
    int done = 0;
    REQUIRE(ggl_os_thread_start(&t, fill_stack, &done, 8 << 20));
    ggl_os_thread_join(t);
    CHECK(done == 1);
    CHECK(!ggl_os_thread_start(&t, fill_stack, &done, SIZE_MAX / 4)); /* no room */
}

/* --- clocks ----------------------------------------------------------------------------------- */

TEST(clocks_go_forward) {
    const int64_t began = ggl_os_clock(), day = ggl_os_time();
    CHECK(began > 0);
    ggl_os_sleep(3 * MS);
    CHECK(ggl_os_clock() >= began + 3 * MS);
    ggl_os_sleep(0);
    ggl_os_sleep(-1);
    CHECK(day / 1000000000 > 1700000000); /* 2023: this file is younger */
    CHECK(ggl_os_seconds() >= 1e-9 * (double)began);
    int64_t last = began;
    for (int i = 0; i < 10000; i++) {
        const int64_t now = ggl_os_clock();
        CHECK(now >= last);
        last = now;
    }
}

TEST(calendars) {
    const struct {
        int64_t seconds;
        int year, month, day, hour, minute, second, of_week, of_year;
    } row[] = {{0, 1970, 1, 1, 0, 0, 0, 4, 0},
               {-1, 1969, 12, 31, 23, 59, 59, 3, 364},
               {-58017600, 1968, 2, 29, 12, 0, 0, 4, 59},
               {-2208988800, 1900, 1, 1, 0, 0, 0, 1, 0},
               {-62135596800, 1, 1, 1, 0, 0, 0, 1, 0},
               {48282134400, 3500, 1, 1, 0, 0, 0, 1, 0},
               {951782399, 2000, 2, 28, 23, 59, 59, 1, 58},
               {951782400, 2000, 2, 29, 0, 0, 0, 2, 59},
               {1741529106, 2025, 3, 9, 14, 5, 6, 0, 67},
               {4107542400, 2100, 3, 1, 0, 0, 0, 1, 59}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct tm t = {0};
        CHECK(ggl_os_utc_parts(row[i].seconds, &t));
        CHECK(t.tm_year + 1900 == row[i].year && t.tm_mon + 1 == row[i].month &&
              t.tm_mday == row[i].day);
        CHECK(t.tm_hour == row[i].hour && t.tm_min == row[i].minute && t.tm_sec == row[i].second);
        CHECK(t.tm_wday == row[i].of_week && t.tm_yday == row[i].of_year);
        CHECK(ggl_os_utc_seconds(&t) == row[i].seconds);
        CHECK(ggl_os_local_parts(row[i].seconds, &t));
    }
    struct tm t = {.tm_year = 125, .tm_mon = 13, .tm_mday = 32}; /* the 32nd of February 2026 */
    CHECK(ggl_os_utc_seconds(&t) == 1772582400);
    t = (struct tm){.tm_year = 69, .tm_mon = -1, .tm_mday = 31, .tm_hour = -1};
    CHECK(ggl_os_utc_seconds(&t) == -31622400 - 3600);
    t = (struct tm){.tm_year = -1, .tm_mon = 1, .tm_mday = 29}; /* 1899 has no leap day */
    CHECK(ggl_os_utc_seconds(&t) == -2235427200);
    CHECK(!ggl_os_utc_parts(INT64_MAX, &t) && t.tm_year == -1);
}

/* --- streams ---------------------------------------------------------------------------------- */

TEST(a_stream_writes_to_memory) {
    os_memory_stream m;
    REQUIRE(ggl_os_memory_stream_open(&m));
    CHECK(ggl_os_memory_stream_count(&m) && m.n == 0);
    fputs("a\r\nb\n\x1a", m.to); /* nothing is changed, as in files of text on some systems */
    CHECK(ggl_os_memory_stream_count(&m) && m.n == 6);
    fputc(0, m.to);
    for (int i = 0; i < 30000; i++)
        fprintf(m.to, "%05d", i);
    REQUIRE(ggl_os_memory_stream_close(&m));
    CHECK(!m.to && m.n == 7 + 150000 && m.text[m.n] == 0);
    CHECK(memcmp(m.text,
                 "a\r\nb\n\x1a\0"
                 "00000"
                 "00001",
                 17) == 0);
    CHECK(memcmp(m.text + m.n - 5, "29999", 5) == 0);
    free(m.text);
}

TEST(a_stream_may_stay_empty) {
    os_memory_stream m;
    REQUIRE(ggl_os_memory_stream_open(&m));
    REQUIRE(ggl_os_memory_stream_close(&m));
    CHECK(m.n == 0 && m.text && *m.text == 0);
    free(m.text);
}

/* --- strings ---------------------------------------------------------------------------------- */

static const char *find_slowly(const char *s, size_t n, const char *what, size_t n_what) {
    for (size_t i = 0; n_what <= n && i <= n - n_what; i++)
        if (memcmp(s + i, what, n_what) == 0)
            return s + i;
    return NULL;
}

/* Texts of few letters, in which much repeats itself, so that all moves of the search occur. */
TEST(bytes_are_found) {
    uint64_t seed = 1;
    for (int round = 0; round < 200000; round++) {
        char s[48], what[12];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t n = seed >> 60 < 2 ? 3 : (seed >> 33) % sizeof s;
        const size_t n_what = (seed >> 20) % (sizeof what + 1);
        const unsigned letters = 1 + (seed >> 50) % 3;
        for (size_t i = 0; i < sizeof s + sizeof what; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            *(i < sizeof s ? &s[i] : &what[i - sizeof s]) = (char)(250 + (seed >> 40) % letters);
        }
        const char *is = find_slowly(s, n, what, n_what);
        REQUIRE(ggl_find_bytes(s, n, what, n_what) == is);
        REQUIRE(find_two_way(s, n, what, n_what) == is);
    }
}

TEST(case_does_not_count) {
    CHECK(ggl_case_compare("Q4_k_M", "q4_K_m") == 0 && ggl_case_compare("", "") == 0);
    CHECK(ggl_case_compare("a", "B") < 0 && ggl_case_compare("B", "a") > 0);
    CHECK(ggl_case_compare("ab", "A") > 0 && ggl_case_compare("A", "ab") < 0);
    CHECK(ggl_case_compare("\xc3\x84", "\xc3\xa4") < 0); /* only ASCII has cases here */
    CHECK(ggl_case_compare("a", "\xc3") < 0 && ggl_case_compare("[", "a") < 0);
    CHECK(ggl_case_compare_n("GGUF-1", "ggufx", 4) == 0 && ggl_case_compare_n("a", "b", 0) == 0);
    CHECK(ggl_case_compare_n("ab", "AB\0x", 9) == 0 && ggl_case_compare_n("ab", "ac", 2) < 0);
    CHECK(ggl_ends_with("a.gguf", ".gguf") && ggl_ends_with("a", "a") && ggl_ends_with("", ""));
    CHECK(!ggl_ends_with("a.GGUF", ".gguf") && ggl_case_ends_with("a.GGUF", ".gguF"));
    CHECK(!ggl_ends_with("guf", ".gguf") && !ggl_case_ends_with("guf", ".gguf"));
    const ggl_str of = {"a.lora_a", 8}, none = {NULL, 0};
    CHECK(ggl_str_ends_with(of, "_a") && !ggl_str_ends_with(of, "_b") && ggl_str_ends_with(of, ""));
    CHECK(ggl_str_begins_with(of, "a.l") && !ggl_str_begins_with(of, "A"));
    CHECK(ggl_case_str_begins_with(of, "A.L") && !ggl_case_str_begins_with(of, "A.LORA_A_"));
    CHECK(ggl_str_begins_with(none, "") && ggl_str_ends_with(none, ""));
    CHECK(!ggl_str_begins_with(none, "a") && !ggl_str_ends_with(none, "a"));
    const char text[] = "mmMMproj";
    CHECK(ggl_case_find(text, "mmPROJ") == text + 2 && ggl_case_find(text, "") == text);
    CHECK(!ggl_case_find(text, "projx") && !ggl_case_find("", "a"));
    CHECK(ggl_case_find("", "") != NULL && ggl_case_find(text, "J") == text + 7);
}

TEST(texts_are_copied) {
    char *a = ggl_copy_text("abc"), *b = ggl_copy_text_n("abc", 2), *c = ggl_copy_text_n("a", 9);
    REQUIRE(a && b && c);
    CHECK(strcmp(a, "abc") == 0 && strcmp(b, "ab") == 0 && strcmp(c, "a") == 0);
    CHECK(ggl_text_length("abc", 2) == 2 && ggl_text_length("ab", 9) == 2);
    CHECK(ggl_text_length(NULL, 0) == 0);
    ggl_free(a);
    free(b);
    ggl_free(c);
}

/* --- attempts --------------------------------------------------------------------------------- */

typedef struct trial {
    os_attempt attempt;
    int depth, reached; /* depth < 0: it does not give up */
} trial;

static void go_down(trial *t, int depth) {
    t->reached++;
    if (depth == t->depth)
        ggl_os_abandon(&t->attempt);
    if (depth < 10)
        go_down(t, depth + 1);
}

static void attempt_it(void *arg) {
    go_down(arg, 0);
}

TEST(an_attempt_is_abandoned_from_any_depth) {
    for (int depth = -1; depth <= 10; depth++) {
        trial t = {.depth = depth};
        CHECK_INT(ggl_os_attempt(&t.attempt, attempt_it, &t), depth < 0);
        CHECK_INT(t.reached, depth < 0 ? 11 : depth + 1);
    }
}

/* An attempt within another one, which goes on after it. */
static void try_twice(void *arg) {
    trial *t = arg, inner = {.depth = 3};
    CHECK_INT(ggl_os_attempt(&inner.attempt, attempt_it, &inner), false);
    CHECK_INT(inner.reached, 4);
    go_down(t, 0);
}

TEST(attempts_may_be_nested) {
    trial t = {.depth = 5};
    CHECK_INT(ggl_os_attempt(&t.attempt, try_twice, &t), false);
    CHECK_INT(t.reached, 6);
}

TEST(a_temporary_file_is_read_back) {
    char text[8] = "";
    FILE *f = ggl_os_tmpfile();
    if (!CHECK(f != NULL))
        return;
    CHECK(fputs("there", f) >= 0 && fseek(f, 0, SEEK_SET) == 0);
    CHECK(fgets(text, sizeof text, f) != NULL);
    CHECK_STR(text, "there");
    fclose(f);
}

/* --- memory ----------------------------------------------------------------------------------- */

TEST(memory_is_aligned) {
    for (size_t align = 1; align <= 1 << 21; align *= 2)
        for (size_t size = 0; size < 3; size++) {
            char *p = ggl_aligned_calloc(align, size);
            REQUIRE(p && (uintptr_t)p % align == 0);
            for (size_t i = 0; i < size; i++)
                CHECK(p[i] == 0);
            memset(p, 1, size);
            ggl_aligned_free(p);
        }
    ggl_aligned_free(NULL);
    CHECK(!ggl_aligned_calloc(64, SIZE_MAX - 64));
}

/* --- sockets ---------------------------------------------------------------------------------- */

/* Returns a socket that is connected to the address; OS_NO_SOCKET: nobody listens there. */
static os_socket connect_to(const struct sockaddr_in *a) {
    const os_socket s = (os_socket)socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (const struct sockaddr *)a, sizeof *a) == 0)
        return s;
    ggl_os_socket_close(s);
    return OS_NO_SOCKET;
}

TEST(clients_are_refused_when_listening_ends) {
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;
    char answer;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(ggl_os_sockets_begin());
    os_socket s = ggl_os_listen((const struct sockaddr *)&a, n, 5);
    REQUIRE(s >= 0 && getsockname(s, (struct sockaddr *)&a, &n) == 0);
    const os_socket waits = connect_to(&a);
    REQUIRE(waits >= 0);
    ggl_os_listen_end(&s);
    CHECK(recv(waits, &answer, 1, 0) <= 0);
    CHECK(connect_to(&a) == OS_NO_SOCKET);
    ggl_os_socket_close(waits);
    if (s >= 0)
        ggl_os_socket_close(s);
}
