/* unit.sound: WAV files of all kinds, raw samples, pipes, and faults. */
#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>

#include "alloc_fail.h"
#include "sound/sound.h"
#include "test.h"
#include "wav_bytes.h"

enum { MOST = 100000 };

static wav_bytes w;
static float x[MOST];

static const llm_sound_params own = {0};

/* Reads all of a sound in parts of at most n samples; -1: an error. */
static int64_t read_parts(llm_sound *s, float *to, int64_t part, ggl_error *err) {
    int64_t n = 0, got = 1;
    while (got > 0) {
        if (part > MOST - n)
            part = MOST - n;
        if (part == 0 || llm_sound_read(s, to + n, part, &got, err) != GGL_OK)
            return -1;
        n += got;
    }
    return n;
}

/* Opens w in memory, or another source, and reads it into x. */
static int64_t read_all(const char *path, llm_sound_params p, char *note, ggl_error *err) {
    llm_sound *s;
    *err = (ggl_error){0};
    if (!path) {
        p.data = w.data;
        p.n_data = w.n;
    }
    if (llm_sound_open(&s, path ? path : "x.wav", &p, err) != GGL_OK)
        return CHECK(!s), -1;
    const int64_t known = llm_sound_n_samples(s), n = read_parts(s, x, MOST, err);
    CHECK(n < 0 || known < 0 || known == n);
    CHECK(n < 0 || llm_sound_n_samples(s) == n);
    if (note)
        snprintf(note, 256, "%s%s%s", llm_sound_note(s),
                 *llm_sound_note(s) && *llm_sound_damage(s) ? "; " : "", llm_sound_damage(s));
    llm_sound_close(s);
    return n;
}

static void expect(const float *want, int64_t n, const char *what) {
    ggl_error err;
    const int64_t got = read_all(NULL, own, NULL, &err);
    CHECK_MSG(got == n, "%s: %lld samples, not %lld: %s", what, (long long)got, (long long)n,
              err.msg);
    for (int64_t i = 0; i < n && i < got; i++)
        CHECK_MSG(x[i] == want[i], "%s: sample %lld is %.9g, not %.9g", what, (long long)i,
                  (double)x[i], (double)want[i]);
}

static void expect_error(llm_sound_params p, ggl_status status, const char *words) {
    ggl_error err;
    CHECK_INT(read_all(NULL, p, NULL, &err), -1);
    CHECK_INT(err.status, status);
    CHECK_HAS(err.msg, words);
    CHECK_MSG(strncmp(err.msg, "x.wav: ", 7) == 0, "%s", err.msg);
}

/* A file of four 16-bit samples, 1/4, -1/2, 0 and 1/8. */
static const unsigned char four[8] = {0, 0x20, 0, 0xc0, 0, 0, 0, 0x10};
static const float four_values[4] = {0.25f, -0.5f, 0, 0.125f};

static void make_four(const char *kind, uint32_t riff, uint32_t size) {
    wav_begin(&w, kind, riff);
    wav_format(&w, 1, 1, 16000, 2, 16, 0);
    wav_chunk(&w, "data", size);
    wav_put(&w, four, sizeof four);
}

TEST(encodings) {
    static const struct {
        int tag, bits, size;
        const char *bytes;
        float value[4];
    } kinds[] = {
        {1, 8, 1, "\x80\xff\x00\x81", {0, 127 / 128.0f, -1, 1 / 128.0f}},
        {1,
         16,
         2,
         "\x01\0\xff\x7f\0\x80\xff\xff",
         {1 / 32768.0f, 32767 / 32768.0f, -1, -1 / 32768.0f}},
        {1, 12, 2, "\x10\0\xf0\x7f\0\x80\xf0\xff", {1 / 2048.0f, 2047 / 2048.0f, -1, -1 / 2048.0f}},
        {1, 24, 3, "\x01\0\0\xff\xff\x7f\0\0\x80\0\0\x40", {0x1p-23f, 1 - 0x1p-23f, -1, 0.5f}},
        {1,
         32,
         4,
         "\0\0\0\x40\0\x01\0\0\0\0\0\x80\xff\xff\xff\xff",
         {0.5f, 0x1p-23f, -1, -0x1p-31f}},
        {1, 24, 4, "\0\0\0\x40\0\x01\0\0\0\0\0\x80\0\xff\xff\xff", {0.5f, 0x1p-23f, -1, -0x1p-23f}},
        {3, 32, 4, "\0\0\x80\x3f\0\0\0\xbf\0\0\0\0\0\0\x80\x40", {1, -0.5f, 0, 4}},
        {3,
         64,
         8,
         "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0\xbf\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x40",
         {1, -0.5f, 0, 4}},
    };
    char what[64];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int way = 0; way < 4; way++) {
            const int n_channels = 1 + way / 2, size = kinds[k].size;
            float want[4];
            wav_begin(&w, "RIFF", 0);
            wav_format(&w, kinds[k].tag, n_channels, 16000, size * n_channels, kinds[k].bits,
                       way % 2);
            wav_data(&w, "data", kinds[k].bytes, (size_t)(4 * size));
            for (int i = 0; i < 4; i++)
                want[i] = n_channels == 1 ? kinds[k].value[i]
                          : i < 2         ? (float)(((double)kinds[k].value[2 * i] +
                                             (double)kinds[k].value[2 * i + 1]) /
                                            2)
                                          : 0;
            snprintf(what, sizeof what, "%d bits in %d bytes, tag %d, %d channels", kinds[k].bits,
                     size, kinds[k].tag, n_channels);
            expect(want, 4 / n_channels, what);
        }
}

TEST(chunks_in_any_order) {
    wav_begin(&w, "RIFF", 500);
    wav_data(&w, "LIST", "odd", 3);
    wav_data(&w, "junk", "", 0);
    wav_format(&w, 1, 1, 16000, 2, 16, 0);
    wav_data(&w, "bext", "12345", 5);
    wav_data(&w, "data", four, 8);
    wav_data(&w, "LIST", "after", 5);
    expect(four_values, 4, "chunks around");

    wav_begin(&w, "RIFF", 500);
    wav_data(&w, "data", four, 8);
    wav_format(&w, 1, 1, 16000, 2, 16, 0);
    expect(four_values, 4, "the format after the data");

    wav_begin(&w, "RIFF", 500);
    wav_format(&w, 1, 1, 16000, 2, 16, 0);
    wav_data(&w, "data", four, 7);
    expect(four_values, 3, "half a sample");
}

TEST(sizes_of_streams) {
    static const uint32_t most = UINT32_MAX;
    make_four("RIFF", 0, 0);
    expect(four_values, 4, "sizes 0");
    make_four("RIFF", 36, 0);
    expect(four_values, 4, "the size of the header");
    make_four("RIFF", most, most);
    expect(four_values, 4, "largest sizes");
    make_four("RIFF", most, 0);
    expect(four_values, 4, "0 in a largest size");
    make_four("RIFF", 44, 0);
    expect(four_values, 0, "really empty");
    make_four("RF64", most, most); /* without ds64 */
    expect(four_values, 4, "no long size");

    static const struct {
        uint64_t size;
        int64_t n;
    } sizes[] = {{8, 4}, {6, 3}, {UINT64_MAX, 4}, {(uint64_t)1 << 40, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < 4; k++) {
            static const uint64_t of_file[] = {1000, 1000, INT64_MAX, UINT64_MAX};
            wav_begin(&w, k ? "BW64" : "RF64", most);
            wav_chunk(&w, "ds64", 28);
            wav_number(&w, of_file[k], 8);
            wav_number(&w, sizes[i].size, 8);
            wav_number(&w, 0, 8);
            wav_number(&w, 0, 4);
            wav_format(&w, 1, 1, 16000, 2, 16, 0);
            wav_chunk(&w, "data", most);
            wav_put(&w, four, 8);
            expect(four_values, sizes[i].n, "a long size");
        }
}

TEST(truncated) {
    ggl_error err;
    char note[256];
    make_four("RIFF", 44, 8);
    const size_t n = w.n;
    for (size_t k = 0; k < n - 8; k++) {
        w.n = k;
        CHECK_MSG(read_all(NULL, own, NULL, &err) == -1, "the first %zu bytes", k);
        CHECK_MSG(strncmp(err.msg, "x.wav: ", 7) == 0 && err.status != GGL_OK, "%zu: %s", k,
                  err.msg);
    }
    for (size_t k = n - 8; k <= n; k++) {
        w.n = k;
        CHECK_INT(read_all(NULL, own, note, &err), (k - (n - 8)) / 2);
        snprintf(err.msg, sizeof err.msg, "it ends %zu samples before its header says",
                 (n - k + 1) / 2);
        CHECK_STR(note, k < n ? err.msg : "");
    }
}

/* Each byte of the header with other values: samples or an error, in time and memory. */
TEST(changed) {
    ggl_error err;
    for (int extensible = 0; extensible < 2; extensible++) {
        wav_begin(&w, "RIFF", 44);
        wav_format(&w, 1, 1, 16000, 2, 16, extensible);
        wav_data(&w, "data", four, 8);
        for (size_t i = 0; i < w.n; i++)
            for (int v = 0; v < 256; v += v < 4 || v > 251 ? 1 : 31) {
                const unsigned char was = w.data[i];
                w.data[i] = (unsigned char)v;
                if (read_all(NULL, (llm_sound_params){.rate = 16000}, NULL, &err) < 0)
                    CHECK_MSG(err.status != GGL_OK && strncmp(err.msg, "x.wav: ", 7) == 0, "%s",
                              err.msg);
                w.data[i] = was;
            }
    }
}

TEST(wrong_numbers) {
    static const struct {
        int tag, n_channels, rate, n_frame, bits;
        ggl_status status;
        const char *words;
    } bad[] = {
        {1, 0, 16000, 2, 16, GGL_UNSUPPORTED, "0 channels, not 1 to 1024"},
        {1, 1025, 16000, 2050, 16, GGL_UNSUPPORTED, "1025 channels"},
        {1, 1, 0, 2, 16, GGL_UNSUPPORTED, "0 samples per second, not 1000 to 1000000"},
        {1, 1, 1000001, 2, 16, GGL_UNSUPPORTED, "1000001 samples per second"},
        {1, 2, 16000, 3, 16, GGL_FORMAT, "with 16 bits, 2 channels and 3 bytes for each frame"},
        {1, 1, 16000, 1, 16, GGL_FORMAT, "16 bits, 1 channels and 1 bytes"},
        {1, 1, 16000, 2, 0, GGL_FORMAT, "0 bits"},
        {1, 1, 16000, 5, 33, GGL_FORMAT, "33 bits"},
        {3, 1, 16000, 2, 16, GGL_FORMAT, "format 0x0003 (float) with 16 bits"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wav_begin(&w, "RIFF", 44);
        wav_format(&w, bad[i].tag, bad[i].n_channels, bad[i].rate, bad[i].n_frame, bad[i].bits, 0);
        wav_data(&w, "data", four, 8);
        expect_error(own, bad[i].status, bad[i].words);
    }
    wav_begin(&w, "RIFF", 44);
    wav_chunk(&w, "fmt ", 15);
    expect_error(own, GGL_FORMAT, "the chunk 'fmt ' has 15 bytes, not 16 or more");
    wav_begin(&w, "RIFF", 44);
    wav_format(&w, 0xfffe, 1, 16000, 2, 16, 0);
    expect_error(own, GGL_FORMAT, "has 16 bytes, not the 40 of its format 0xfffe");
    wav_begin(&w, "RIFF", 44);
    wav_format(&w, 1, 1, 16000, 2, 16, 0);
    expect_error(own, GGL_FORMAT, "WAV without a chunk 'data'");
    wav_begin(&w, "RIFF", 44);
    wav_data(&w, "data", four, 8);
    expect_error(own, GGL_FORMAT, "WAV without a chunk 'fmt '");
    make_four("RIFF", 44, 8);
    expect_error((llm_sound_params){.rate = 999}, GGL_USAGE,
                 "wanted are 999 samples per second, not 1000 to");
    expect_error((llm_sound_params){.rate = -1}, GGL_USAGE, "wanted are -1");
    expect_error((llm_sound_params){.raw = LLM_SOUND_S16LE}, GGL_USAGE, "raw samples");
    expect_error((llm_sound_params){.raw = (llm_sound_raw)7, .rate = 16000}, GGL_USAGE, "kind 7");
    w.n = 0;
    expect_error(own, GGL_FORMAT, "is empty");
}

TEST(samples_that_are_no_numbers) {
    static const char *const bits[] = {"\0\0\xc0\x7f", "\0\0\x80\xff", "\0\0\0\0\0\0\xf8\x7f",
                                       "\0\0\0\0\0\0\0\x7f"};
    for (int i = 0; i < 4; i++) {
        const int size = i < 2 ? 4 : 8;
        wav_begin(&w, "RIFF", 44);
        wav_format(&w, 3, 1, 16000, size, 8 * size, 0);
        wav_chunk(&w, "data", (uint32_t)(3 * size));
        wav_put(&w, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", (size_t)(2 * size));
        wav_put(&w, bits[i], (size_t)size);
        expect_error(own, GGL_FORMAT, "frame 2 has the sample ");
    }
}

TEST(other_kinds) {
    static const struct {
        const char *bytes, *kind;
        bool known;
    } kinds[] = {
        {"fLaC\0\0\0\x22________", "FLAC", true},
        {"OggS\0\2__________", "Ogg", true},
        {"ID3\4\0\0\0\0\0\0______", "MP3", true},
        {"\xff\xfb\x90\x64____________", "MP3", true},
        {"FORM\0\0\0\0AIFF____", "AIFF", true},
        {"RIFX\0\0\0\0WAVE____", "big-endian WAV", true},
        {"\0\0\0\x20"
         "ftypM4A ____",
         "MP4", false},
        {"\x1a\x45\xdf\xa3____________", "WebM or Matroska", false},
        {"\xff\xf1\x50\x80____________", "AAC", false},
        {"#!AMR\n__________", "AMR", false},
    };
    char words[200];
    ggl_error err;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        w.n = 0;
        wav_put(&w, kinds[i].bytes, 16);
        snprintf(words, sizeof words, "x.wav: is %s, which ", kinds[i].kind);
        if (kinds[i].known && llm_sound_library()) {
            CHECK(read_all(NULL, own, NULL, &err) <= 0);
            CHECK(err.status == GGL_OK || strstr(err.msg, "x.wav: is ") == err.msg);
            continue;
        }
        expect_error(own, GGL_UNSUPPORTED, words);
        expect_error(own, GGL_UNSUPPORTED, "convert it: ffmpeg -i x.wav -ar 16000 -ac 1 out.wav");
        if (kinds[i].known)
            expect_error(own, GGL_UNSUPPORTED, "libsndfile1-dev");
    }
    w.n = 0;
    wav_put(&w, "<html>\n<body></body>", 20);
    expect_error(own, GGL_UNSUPPORTED, "begins with \"<htm\", as no kind of sound");
    wav_begin(&w, "RIFF", 44);
    wav_format(&w, 0x11, 1, 16000, 256, 4, 0);
    wav_data(&w, "data", four, 8);
    if (!llm_sound_library())
        expect_error(own, GGL_UNSUPPORTED,
                     "is WAV with samples of format 0x0011 (ADPCM), which this build cannot read");
    else
        CHECK(read_all(NULL, own, NULL, &err) >= -1);
}

TEST(raw_samples) {
    ggl_error err;
    w.n = 0;
    wav_put(&w, four, 8);
    llm_sound_params p = {.raw = LLM_SOUND_S16LE, .rate = 16000};
    CHECK_INT(read_all(NULL, p, NULL, &err), 4);
    CHECK(memcmp(x, four_values, sizeof four_values) == 0);
    p.raw_channels = 2;
    CHECK_INT(read_all(NULL, p, NULL, &err), 2);
    CHECK(x[0] == -0.125f && x[1] == 0.0625f);
    p.raw_rate = 8000;
    CHECK_INT(read_all(NULL, p, NULL, &err), 4);
    w.n = 0;
    wav_put(&w, four_values, sizeof four_values);
    CHECK_INT(
        read_all(NULL, (llm_sound_params){.raw = LLM_SOUND_F32LE, .raw_rate = 22050}, NULL, &err),
        4);
    CHECK(memcmp(x, four_values, sizeof four_values) == 0);
}

/* A ramp of 16-bit samples, longer than any buffer. */
static void make_ramp(int rate, int n_channels) {
    const int n_bytes = 60000 / (2 * n_channels) * 2 * n_channels;
    wav_begin(&w, "RIFF", (uint32_t)n_bytes + 36);
    wav_format(&w, 1, n_channels, rate, 2 * n_channels, 16, 0);
    wav_chunk(&w, "data", (uint32_t)n_bytes);
    for (int i = 0; i < n_bytes / 2; i++)
        wav_number(&w, (uint64_t)(i * 7919 % 20011), 2);
}

TEST(parts_of_any_length) {
    static const int rates[] = {16000, 44100, 48000, 8000, 44056, 44057};
    static float all[MOST];
    ggl_error err = {0};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (int n_channels = 1; n_channels <= 3; n_channels += 2) {
            llm_sound *s;
            make_ramp(rates[i], n_channels);
            const llm_sound_params p = {.rate = 16000, .data = w.data, .n_data = w.n};
            const int64_t n = read_all(NULL, p, NULL, &err);
            CHECK_MSG(n > 0, "%s", err.msg);
            memcpy(all, x, sizeof all);
            REQUIRE_OK(llm_sound_open(&s, "x.wav", &p, &err), &err);
            CHECK(llm_sound_can_rewind(s) && llm_sound_rate(s) == 16000);
            for (int64_t part = 1; part < 9000; part = part * 5 + 2) {
                CHECK_INT(read_parts(s, x, part, &err), n);
                CHECK_MSG(memcmp(x, all, (size_t)n * sizeof *x) == 0, "parts of %lld",
                          (long long)part);
                CHECK_OK(llm_sound_rewind(s, &err), &err);
            }
            llm_sound_close(s);
        }
}

TEST(notes) {
    char note[256];
    ggl_error err;
    make_ramp(44100, 2);
    read_all(NULL, (llm_sound_params){.rate = 16000}, note, &err);
    CHECK_STR(note, "44100 Hz, 2 channels: resampled to 16000 Hz, channels mixed");
    read_all(NULL, own, note, &err);
    CHECK_STR(note, "44100 Hz, 2 channels: channels mixed");
    w.n -= 6;
    make_ramp(8000, 1);
    w.n -= 6;
    read_all(NULL, (llm_sound_params){.rate = 16000}, note, &err);
    CHECK_STR(
        note,
        "8000 Hz, 1 channel: resampled to 16000 Hz; it ends 3 samples before its header says");
}

/* The path of a pipe from which a child's `times` copies of w come, in parts of `part` bytes. */
static const char *pipe_of_w(int times, size_t part, int *fd) {
    int ends[2];
    char *path = test_path_buffer();
    if (pipe(ends) != 0)
        abort();
    if (fork() == 0) {
        close(ends[0]);
        for (int i = 0; i < times; i++)
            for (size_t k = 0; k < w.n; k += part)
                if (write(ends[1], w.data + k, part < w.n - k ? part : w.n - k) < 0)
                    _exit(1);
        _exit(0);
    }
    close(ends[1]);
    *fd = ends[0];
    snprintf(path, 1024, "/dev/fd/%d", ends[0]);
    return path;
}

TEST(files_and_pipes) {
    static float all[MOST];
    ggl_error err = {0};
    int fd;
    make_ramp(44100, 2);
    const int64_t n = read_all(NULL, (llm_sound_params){.rate = 16000}, NULL, &err);
    memcpy(all, x, sizeof all);
    REQUIRE(test_write_file(test_path("a.wav"), w.data, w.n));
    CHECK_INT(read_all(test_path("a.wav"), (llm_sound_params){.rate = 16000}, NULL, &err), n);
    CHECK(memcmp(all, x, (size_t)n * sizeof *x) == 0);
    for (size_t part = 1; part < 70000; part = part * 37 + 5) {
        const char *path = pipe_of_w(1, part, &fd);
        CHECK_INT(read_all(path, (llm_sound_params){.rate = 16000}, NULL, &err), n);
        CHECK(memcmp(all, x, (size_t)n * sizeof *x) == 0);
        close(fd);
        wait(NULL);
    }
    CHECK_INT(read_all(test_path("none.wav"), own, NULL, &err), -1);
    CHECK_HAS(err.msg, "none.wav: ");
    CHECK_INT(read_all(test_folder(), own, NULL, &err), -1);
    CHECK_HAS(err.msg, "directory");
}

TEST(pipes_go_forward_only) {
    ggl_error err = {0};
    llm_sound *s;
    char note[256];
    int fd;
    wav_begin(&w, "RIFF", 500);
    wav_data(&w, "data", four, 8);
    wav_format(&w, 1, 1, 16000, 2, 16, 0);
    CHECK_INT(read_all(pipe_of_w(1, 100, &fd), own, NULL, &err), -1);
    CHECK_HAS(err.msg, "the samples come before their format");
    close(fd);
    make_four("RIFF", 44, 80);
    CHECK_INT(read_all(pipe_of_w(1, 100, &fd), own, note, &err), 4);
    CHECK_STR(note, "it ends 36 samples before its header says");
    close(fd);
    make_four("RIFF", 0x80000024,
              0x80000000); /* as a recorder writes it that does not know how long it will record */
    CHECK_INT(read_all(pipe_of_w(1, 100, &fd), own, note, &err), 4);
    CHECK_STR(note, "");
    close(fd);
    make_four("RIFF", 0x70000024, 0x70000000); /* 16 hours, of which most are missing */
    CHECK_INT(read_all(pipe_of_w(1, 100, &fd), own, note, &err), 4);
    CHECK_HAS(note, "samples before its header says");
    close(fd);
    make_ramp(16000, 1);
    REQUIRE_OK(llm_sound_open(&s, pipe_of_w(3, 4096, &fd),
                              &(llm_sound_params){.raw = LLM_SOUND_S16LE, .rate = 16000}, &err),
               &err);
    CHECK(!llm_sound_can_rewind(s) && llm_sound_n_samples(s) == -1);
    CHECK_INT(read_parts(s, x, 1000, &err), 3 * w.n / 2);
    CHECK_INT(llm_sound_n_samples(s), 3 * w.n / 2);
    CHECK_INT(llm_sound_rewind(s, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "a pipe can be read once only");
    llm_sound_close(s);
    close(fd);
    while (wait(NULL) > 0)
        continue;
}

static bool open_and_read(void *arg) {
    ggl_error err;
    (void)arg;
    return read_all(test_path("a.wav"), (llm_sound_params){.rate = 16000}, NULL, &err) > 0;
}

TEST(out_of_memory) {
    make_ramp(44100, 2);
    REQUIRE(test_write_file(test_path("a.wav"), w.data, w.n));
    CHECK(alloc_fail_each(open_and_read, NULL) >= 6);
}
