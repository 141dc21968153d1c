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

/* What libsndfile 1.2 makes of the same bytes, in 16 bits; of two channels, in turns. */
static void expect_16(const int *want, int n, int n_channels, const char *what) {
    float value[256];
    for (int i = 0; i < n / n_channels; i++)
        value[i] = n_channels == 1
                       ? (float)want[i] / 32768
                       : (float)((double)want[2 * i] / 65536 + (double)want[2 * i + 1] / 65536);
    expect(value, n / n_channels, what);
}

TEST(telephones) {
    static const unsigned char bytes[] = {255, 127, 0, 128, 213, 42, 156, 17};
    static const int ulaw[] = {0, 0, -32124, 32124, 716, -5372, 9852, -15484},
                     alaw[] = {848, -848, -5504, 5504, 8, -32256, 3264, -2624};
    for (int law = 6; law <= 7; law++) {
        wav_begin(&w, "RIFF", 44);
        wav_format(&w, law, 1, 8000, 1, 8, law == 7);
        wav_data(&w, "data", bytes, sizeof bytes);
        expect_16(law == 7 ? ulaw : alaw, 8, 1, law == 7 ? "mu-law" : "A-law");
    }
}

static void put_blocks(int tag, int n_channels, int n_block, int n_samples, const void *data,
                       size_t n) {
    wav_begin(&w, "RIFF", 64);
    wav_chunk(&w, "fmt ", 20);
    wav_number(&w, (uint64_t)tag, 2);
    wav_number(&w, (uint64_t)n_channels, 2);
    wav_number(&w, 16000, 4);
    wav_number(&w, 16000, 4);
    wav_number(&w, (uint64_t)n_block, 2);
    wav_number(&w, 4, 2);
    wav_number(&w, 2, 2);
    wav_number(&w, (uint64_t)n_samples, 2);
    wav_data(&w, "data", data, n);
}

TEST(nibbles) {
    static const struct {
        int tag, n_channels, n_block, n_samples;
        unsigned char bytes[64];
        int want[130];
    } blocks[] = {
        {0x11,
         1,
         32,
         57,
         {78,  39,  20,  0,   251, 31, 108, 241, 181, 41,  163, 225, 204, 92,  230, 130,
          195, 142, 192, 240, 132, 27, 235, 249, 54,  172, 100, 248, 110, 171, 177, 20},
         {10062,  10019,  9936,   9755,   9833,   9620,   9993,   10146,  9452,   10546,
          9527,   9130,   9731,   10497,  10000,  10271,  9202,   7891,   6304,   4384,
          7224,   12138,  3432,   9364,   8286,   15149,  7126,   -6897,  -8808,  -7071,
          -21285, -19374, -32768, 750,    -3345,  -29414, -19258, -32768, -32768, -32768,
          -32768, 20477,  32767,  -751,   -21229, 12289,  32767,  28672,  -27191, -32768,
          20477,  -8192,  -26813, -16657, -32768, -7585,  2571}},
        {0x11,
         2,
         64,
         57,
         {179, 19,  20,  0,   251, 171, 27,  0,   6,   61, 123, 72,  191, 108, 97,  96,
          123, 9,   129, 160, 194, 101, 73,  205, 4,   16, 182, 148, 222, 218, 173, 44,
          145, 217, 12,  173, 68,  125, 35,  223, 20,  70, 59,  56,  95,  190, 63,  139,
          62,  122, 148, 86,  69,  145, 247, 230, 181, 12, 128, 15,  188, 187, 38,  122},
         {5043,  -21509, 5124,   -21690, 5135,  -21872, 5025,  -22085, 5127,  -21712, 5035,  -21559,
          5216,  -20957, 5190,   -20875, 5403,  -19904, 5203,  -19242, 5594,  -20325, 5426,  -18723,
          5477,  -15950, 5615,   -17084, 5573,  -13992, 5611,  -18565, 5438,  -24044, 5722,  -32768,
          5760,  -32768, 5794,   -32768, 5888,  -32768, 6261,  -32768, 5904,  -32768, 6321,  -32768,
          6153,  -12290, 6306,   21228,  6168,  32767,  6042,  -12286, 5621,  32767,  5116,  32767,
          5184,  32767,  4506,   -18018, 4054,  -32768, 4794,  -32768, 5092,  12285,  6268,  -32768,
          7710,  -32768, 6352,   -32768, 7585,  -4099,  7425,  -30168, 8444,  -32768, 6722,  1087,
          8364,  32767,  7298,   32767,  10208, 21595,  13950, 32767,  12441, -28669, 18388, 24576,
          27303, -28669, 32767,  -32768, 20607, -32768, 6393,  -32768, 8304,  -32768, 10041, 7243,
          8462,  27721,  -13074, 9100,   -9997, 32767}},
        {2,
         1,
         19,
         26,
         {3, 40, 0, 229, 9, 1, 53, 221, 46, 223, 223, 19, 242, 242, 209, 240, 3, 51, 62},
         {13569, 2533, 5172, 4407, 4660, 4542, 4499, 4488, 4436, 4433, 4449, 4493, 4466,
          4504,  4478, 4516, 4458, 4488, 4464, 4470, 4468, 4516, 4552, 4591, 4629, 4587}},
        {2,
         2,
         26,
         14,
         {3,   5,  40,  0,   41, 0, 55,  93, 17, 166, 101, 245, 48,
          176, 19, 255, 221, 63, 1, 221, 3,  63, 3,   33,  239, 30},
         {-2715, -20432, 23863, -23023, 17258, -24646, 18874, -25616, 18377, -26100,
          18582, -26114, 18530, -25693, 18480, -25016, 18492, -24019, 18537, -22851,
          18525, -21497, 18560, -20045, 18519, -18569, 18545, -17112}}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const int n = blocks[i].n_samples * blocks[i].n_channels;
        put_blocks(blocks[i].tag, blocks[i].n_channels, blocks[i].n_block, blocks[i].n_samples,
                   blocks[i].bytes, (size_t)blocks[i].n_block);
        expect_16(blocks[i].want, n, blocks[i].n_channels, "ADPCM");
        put_blocks(blocks[i].tag, blocks[i].n_channels, blocks[i].n_block, 0, blocks[i].bytes,
                   (size_t)blocks[i].n_block);
        expect_16(blocks[i].want, n, blocks[i].n_channels, "ADPCM without a number of samples");
        put_blocks(blocks[i].tag, blocks[i].n_channels, blocks[i].n_block, blocks[i].n_samples + 1,
                   blocks[i].bytes, (size_t)blocks[i].n_block);
        expect_error(own, GGL_FORMAT, "do not fit together");
        put_blocks(blocks[i].tag, blocks[i].n_channels, 3, 0, blocks[i].bytes, 3);
        expect_error(own, GGL_FORMAT, "do not fit together");
    }
    put_blocks(0x11, 3, 256, 0, blocks[0].bytes, 16);
    expect_error(own, GGL_UNSUPPORTED, "ADPCM with 3 channels");
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
    (void)setenv("PATH", "/nowhere", 1); /* there is no ffmpeg */
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
    wav_format(&w, 0x31, 1, 16000, 65, 0, 0);
    wav_data(&w, "data", four, 8);
    if (!llm_sound_library())
        expect_error(own, GGL_UNSUPPORTED,
                     "is WAV with samples of format 0x0031 (GSM 6.10), which this build reads by "
                     "the program ffmpeg");
    else
        CHECK(read_all(NULL, own, NULL, &err) >= -1);
}

/* libsndfile cannot go back in GSM 6.10: it is opened anew. */
TEST(twice_without_seeking) {
    static const char block[4 * 65] = {0};
    ggl_error err = {0};
    llm_sound *s = NULL;
    static float first[MOST];
    int64_t n = 0, again = 0;
    wav_begin(&w, "RIFF", sizeof block + 40);
    wav_chunk(&w, "fmt ", 20);
    wav_number(&w, 0x31, 2);
    wav_number(&w, 1, 2);
    wav_number(&w, 8000, 4);
    wav_number(&w, 1625, 4);
    wav_number(&w, 65, 2);
    wav_number(&w, 0, 2);
    wav_number(&w, 2, 2);
    wav_number(&w, 320, 2);
    wav_data(&w, "data", block, sizeof block);
    if (!llm_sound_library())
        return;
    const llm_sound_params p = {.data = w.data, .n_data = w.n, .rate = 8000};
    CHECK_OK(llm_sound_open(&s, "x.wav", &p, &err), &err);
    if (!s)
        return;
    n = read_parts(s, first, MOST, &err);
    CHECK(n > 0);
    CHECK_OK(llm_sound_rewind(s, &err), &err);
    again = read_parts(s, x, MOST, &err);
    CHECK(again == n && memcmp(first, x, (size_t)n * sizeof *x) == 0);
    llm_sound_close(s);
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
    w.n -= 3;
    char note[256];
    p = (llm_sound_params){.raw = LLM_SOUND_F32LE, .rate = 16000};
    CHECK_INT(read_all(NULL, p, note, &err), 3);
    CHECK_STR(note, "it ends in the middle of a sample");
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
