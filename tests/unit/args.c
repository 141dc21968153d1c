/* tools/common/args.h: what is read, what is refused and in which words. stderr and stdout go through files. */
#include "test.h"

#include <math.h>

#include "common/args.h"
#include "common/input.h"
#include "ggl/alloc.h"

static struct {
    bool flag, unflag, given;
    int64_t n;
    uint64_t seed;
    double temp;
    const char *model, *maybe, *when;
    int mode;
    arg_list files, rest;
} v;

static const char *const MODES[] = {"fast", "slow", NULL};

static const arg_option OPTIONS[] = {
    {.names = NULL, .help = "General:"},
    {"-m --model", ARG_STRING, &v.model, .value = "FILE", .help = "the model"},
    {"-n --predict --n-predict", ARG_INT, &v.n, .value = "N",
     .help = "tokens to predict (default -1)", .min = -1, .max = 1000, .given = &v.given},
    {"--temp", ARG_FLOAT, &v.temp, .value = "T", .help = "temperature (default 0.8)", .max = 100},
    {"--any", ARG_FLOAT, &v.temp, .value = "T", .help = "any number"},
    {"--seed", ARG_UINT64, &v.seed, .value = "N",
     .help = "a rather long text about the seed that must be broken into several lines, as it does "
             "not fit one"},
    {"--flag", ARG_FLAG, &v.flag, .help = "a flag"},
    {"--no-map", ARG_UNFLAG, &v.unflag, .help = "no map"},
    {"--keep", ARG_MAYBE, &v.maybe, .value = "FILE", .help = "keep it, perhaps in a file"},
    {"--when", ARG_MAYBE, &v.when, .value = "M", .help = "when, perhaps how", .choices = MODES},
    {"--mode", ARG_CHOICE, &v.mode, .value = "M", .help = "fast or slow", .choices = MODES},
    {"--a-very-long-name-indeed", ARG_LIST, &v.files, .value = "FILE",
     .help = "a file; may be repeated"},
    {0}};

static char out[8192]; /* what the last call printed, on either stream */

/* Parses the words of `line` (at most 15, separated by one space; "" stands for an empty one). */
static int parse(const char *line, bool positional) {
    static char words[1024];
    char *argv[16] = {"tool"};
    int argc = 1;
    args_list_fini(&v.files);
    args_list_fini(&v.rest);
    memset(&v, 0, sizeof v);
    v.unflag = true;
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w && argc < 16; w = strtok(NULL, " "))
        argv[argc++] = strcmp(w, "\"\"") == 0 ? "" : w;
    static const arg_hint hints[] = {{1, "-else --elsewhere", "here it is --temp", HINT_REFUSED},
                                     {1, "run", "there is only one", HINT_REFUSED},
                                     {1, "--warm", "it is never cold", HINT_NOTHING},
                                     {1, "--heat", "it is warm", HINT_NOTHING_VALUE},
                                     {1, "-fa --flash", "it is on", HINT_NOTHING_SWITCH},
                                     {1, "--max-tokens", "-n", HINT_SAME},
                                     {1, "--slowly", "--mode=slow", HINT_SAME},
                                     {1, "--most -n=all --predict=all", "-n=1000", HINT_SAME},
                                     {1, "--mode=medium", "too lukewarm", HINT_REFUSED},
                                     {1, "--mode=usual", "it is always so", HINT_NOTHING},
                                     {1, "--up", "--flag", HINT_SAME},
                                     {1, "--*-model", "models are files", HINT_REFUSED},
                                     {1, "--mode=s*er", "--mode=slow", HINT_SAME},
                                     {2, "--other", "for another tool", HINT_REFUSED},
                                     {0}};
    static const arg_hints own = {hints, 1};
    static const args_example examples[] = {{"tool --flag", "with the flag"}, {0}};
    const args_spec spec = {
        "tool", "[options]",         "Does things.", OPTIONS, positional ? &v.rest : NULL,
        &own,   .examples = examples};
    fflush(NULL);
    int saved[2] = {dup(1), dup(2)};
    const char *path = test_path("out");
    FILE *f = fopen(path, "wb");
    dup2(fileno(f), 1);
    dup2(fileno(f), 2);
    int code = args_parse(&spec, argc, argv);
    fflush(NULL);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    fclose(f);
    size_t n = 0;
    char *text = (char *)test_read_file(path, &n);
    snprintf(out, sizeof out, "%.*s", (int)n, text ? text : "");
    free(text);
    return code;
}

TEST(accepted) {
    CHECK_INT(
        parse("-m a.gguf -n 5 --temp 0.5 --seed 18446744073709551615 --flag --no-map --mode slow",
              false),
        -1);
    CHECK_STR(v.model, "a.gguf");
    CHECK(v.n == 5 && v.given && v.temp == 0.5 && v.seed == UINT64_MAX && v.flag && !v.unflag &&
          v.mode == 1);
    CHECK_STR(out, "");
    CHECK_INT(parse("--n-predict=-1 --temp=1e1 -m=c=d", false), -1);
    CHECK_STR(v.model, "c=d");
    CHECK(v.n == -1 && v.temp == 10);
    CHECK_INT(parse("--n_predict 3 --a_very_long_name_indeed a_b", false), -1);
    CHECK(v.n == 3 && v.files.n == 1);
    CHECK_STR(v.files.s[0], "a_b");
    CHECK_INT(parse("", false), -1);
    CHECK(!v.given && v.unflag && !v.maybe);
    CHECK_INT(parse("--keep --flag", false), -1);
    CHECK_STR(v.maybe, "");
    CHECK(v.flag);
    CHECK_INT(parse("--keep=a.b", false), -1);
    CHECK_STR(v.maybe, "a.b");
    CHECK_INT(parse("--keep a.b", false), 2);     /* a value of its own is none of it */
    CHECK_INT(parse("--when --flag", false), -1); /* one of the choices may be the next word */
    CHECK(v.flag && strcmp(v.when, "") == 0);
    CHECK_INT(parse("--when Slow --flag", false), -1);
    CHECK(v.flag && strcmp(v.when, "slow") == 0);
    CHECK_INT(parse("--when=FAST x", true), -1);
    CHECK(v.rest.n == 1 && strcmp(v.when, "fast") == 0);
    CHECK_INT(parse("--when x", true), -1);
    CHECK(v.rest.n == 1 && strcmp(v.when, "") == 0);
    CHECK_INT(parse("--when=x", true), 2);
    CHECK_HAS(out, "--when: 'x' is not one of fast, slow");
    CHECK_INT(parse("--a-very-long-name-indeed x --a-very-long-name-indeed=--flag", false), -1);
    CHECK(v.files.n == 2 && !v.flag);
    CHECK_STR(v.files.s[1], "--flag");
    CHECK_INT(parse("a - -- --flag -n", true), -1);
    CHECK_INT(v.rest.n, 4);
    CHECK(!v.flag);
    CHECK_INT(parse("-m -x -n -1", false), -1); /* a value may begin with a dash */
    CHECK_STR(v.model, "-x");
}

/* -q leaves notes out, wherever it stands, but is not found in values. */
TEST(quiet) {
    const char *const quiet[] = {"--warm -q", "-q --warm", "--quiet --warm --flag"};
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        CHECK_INT(parse(quiet[i], false), -1);
        CHECK_STR(out, "");
        CHECK(tool_is_quiet() && !tool_shows_progress());
        tool_set_quiet(false);
    }
    CHECK_INT(parse("-q --nonsense", false), 2);
    CHECK_HAS(out, "unknown flag '--nonsense'");
    tool_set_quiet(false);
    CHECK_INT(parse("-m -- -q", false), -1); /* "--" is a value */
    CHECK(tool_is_quiet());
    tool_set_quiet(false);
    const char *const loud[] = {"-m=-q --warm", "--warm -- -q"};
    for (size_t i = 0; i < sizeof loud / sizeof *loud; i++) {
        CHECK_INT(parse(loud[i], true), -1);
        CHECK_HAS(out, "note: --warm");
        CHECK(!tool_is_quiet());
    }
    CHECK_INT(parse("-m -q", false), 2); /* the value is missing */
    tool_set_quiet(false);
}

/* Arguments without a flag, as the usage line names them. */
TEST(operands) {
    const args_operand choices[] = {{"TYPE", MODES}, {0}};
    args_spec spec = {"tool",
                      "[-m MODEL | --text FILE] IN [FOLDER] TYPE OUT.gguf..",
                      "",
                      OPTIONS,
                      &v.rest,
                      NULL,
                      .operands = choices};
    const char *usage = spec.usage;
    static const struct {
        const char *name;
        arg_value value;
    } expected[] = {{"IN", ARG_VALUE_MODEL},
                    {"FOLDER", ARG_VALUE_FOLDER},
                    {"TYPE", ARG_VALUE_WORDS},
                    {"OUT.gguf", ARG_VALUE_FILE}};
    arg_operand o;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK(arg_next_operand(&spec, &usage, &o));
        CHECK(o.n == strlen(expected[i].name) && memcmp(o.name, expected[i].name, o.n) == 0);
        CHECK_INT(o.value, expected[i].value);
    }
    CHECK(!arg_next_operand(&spec, &usage, &o));
    spec.positional = NULL;
    usage = spec.usage;
    CHECK(!arg_next_operand(&spec, &usage, &o));
}

/* Flags of other programs that are accepted. */
TEST(habits) {
    CHECK_INT(parse("--warm --flag", false), -1);
    CHECK_STR(out, "tool: note: --warm: it is never cold; the flag has no effect\n");
    CHECK(v.flag);
    CHECK_INT(parse("--heat 5 --flag", false), -1);
    CHECK_STR(out, "tool: note: --heat: it is warm; the flag has no effect\n");
    CHECK(v.flag);
    CHECK_INT(parse("--heat=-m", false), -1);
    CHECK(!v.model);
    CHECK_INT(parse("-fa --flag", false), -1);
    CHECK(v.flag);
    CHECK_INT(parse("--flash off x", true), -1);
    CHECK_STR(out, "tool: note: --flash: it is on; the flag has no effect\n");
    CHECK(v.rest.n == 1);
    CHECK_INT(parse("-fa x", true), -1);
    CHECK(v.rest.n == 1);
    CHECK_INT(parse("-fa=on", false), -1);
    CHECK_INT(parse("--max-tokens 7", false), -1);
    CHECK(v.n == 7 && v.given);
    CHECK_STR(out, "");
    CHECK_INT(parse("--max_tokens=8", false), -1);
    CHECK(v.n == 8);
    CHECK_INT(parse("--slowly --flag", false), -1);
    CHECK(v.mode == 1 && v.flag);
    CHECK_INT(parse("-n all --flag", false), -1);
    CHECK(v.n == 1000 && v.flag);
    CHECK_INT(parse("--predict=ALL", false), -1);
    CHECK(v.n == 1000);
    CHECK_INT(parse("--most --flag", false), -1);
    CHECK(v.n == 1000 && v.flag);
    CHECK_INT(parse("--mode usual --mode=slow", false), -1);
    CHECK(v.mode == 1);
    CHECK_STR(out, "tool: note: --mode usual: it is always so; the flag has no effect\n");
    CHECK_INT(parse("--mode slower", false), -1);
    CHECK_INT(v.mode, 1);
    CHECK_INT(parse("--up", false), -1);
    CHECK(v.flag);
}

/* A value may be given again, but no other one. */
TEST(given_twice) {
    CHECK_INT(parse("-n 5 --predict 5 --temp 0.5 --temp=.50 -m a --model a --mode slow --mode SLOW",
                    false),
              -1);
    CHECK_INT(parse("--flag --flag --keep --keep --a-very-long-name-indeed a "
                    "--a-very-long-name-indeed b",
                    false),
              -1);
    CHECK_INT(v.files.n, 2);
}

TEST(environment) {
    static const char note[] = "tool: note: only llama.cpp's programs read these variables; flags "
                               "set the same here:";
    test_set_variable("LLAMA_ARG_N_PREDICT", "5");
    CHECK_INT(parse("--flag", false), -1);
    CHECK_HAS(out, note);
    CHECK_HAS(out, " LLAMA_ARG_N_PREDICT\n");
    test_set_variable("LLAMA_ARG_A", "5");
    test_set_variable("LLAMA_ARG_B", "5");
    test_set_variable("LLAMA_ARG_C", "5");
    test_set_variable("LLAMA_ARG_D", "5");
    CHECK_INT(parse("--flag", false), -1);
    CHECK_HAS(out, " and 2 more\n");
    test_set_variable("LLAMA_ARG_N_PREDICT", NULL);
    test_set_variable("LLAMA_ARG_A", NULL);
    test_set_variable("LLAMA_ARG_B", NULL);
    test_set_variable("LLAMA_ARG_C", NULL);
    test_set_variable("LLAMA_ARG_D", NULL);
    CHECK_INT(parse("--flag", false), -1);
    CHECK_STR(out, "");
}

TEST(refused) {
    const struct {
        const char *line, *words;
    } cases[] = {
        {"--tmep 1", "tool: unknown flag '--tmep'; did you mean '--temp'?\n"},
        {"--see 1", "tool: unknown flag '--see'; did you mean '--seed'?\n"},
        {"-x", "tool: unknown flag '-x'; --help lists them\n"},
        {"-cab", "tool: unknown flag '-cab'; --help lists them\n"},
        {"--elsewhere=3", "tool: there is no flag '--elsewhere': here it is --temp\n"},
        {"--other", "tool: unknown flag '--other'; --help lists them\n"},
        {"-else", "tool: there is no flag '-else': here it is --temp\n"},
        {"--sed=1", "tool: unknown flag '--sed'; did you mean '--seed'?\n"},
        {"--verison", "tool: unknown flag '--verison'; did you mean '--version'?\n"},
        {"--frobnicate", "tool: unknown flag '--frobnicate'; --help lists them\n"},
        {"-x", "tool: unknown flag '-x'; --help lists them\n"},
        {"-x=1", "tool: unknown flag '-x'; --help lists them\n"},
        {"-m=", "tool: -m: the value FILE is empty\n"},
        {"--model \"\"", "tool: --model: the value FILE is empty\n"},
        {"--a-very-long-name-indeed=",
         "tool: --a-very-long-name-indeed: the value FILE is empty\n"},
        {"--temp abc", "tool: --temp: 'abc' is not a number\n"},
        {"--temp \"\"", "tool: --temp: '' is not a number\n"},
        {"--temp 1x", "tool: --temp: '1x' is not a number\n"},
        {"--temp 0x10", "tool: --temp: '0x10' is not a number\n"},
        {"--temp nan", "tool: --temp: 'nan' is not a number\n"},
        {"--temp inf", "tool: --temp: 'inf' is not a number\n"},
        {"--temp 0,5", "tool: --temp: '0,5' is not a number\n"},
        {"--temp=", "tool: --temp: '' is not a number\n"},
        {"--temp 101", "tool: --temp: 101 is out of range, 0 to 100 is allowed\n"},
        {"--temp -0.1", "tool: --temp: -0.1 is out of range, 0 to 100 is allowed\n"},
        {"--any 1e999", "tool: --any: 1e999 is out of range\n"},
        {"-n 1.5", "tool: -n: '1.5' is not a whole number\n"},
        {"-n 1001", "tool: -n: 1001 is out of range, -1 to 1000 is allowed\n"},
        {"-n 99999999999999999999",
         "tool: -n: 99999999999999999999 is out of range, -1 to 1000 is allowed\n"},
        {"--seed -1", "tool: --seed: '-1' is not a whole number of at least 0\n"},
        {"--seed 18446744073709551616", "tool: --seed: 18446744073709551616 is out of range\n"},
        {"--mode quick", "tool: --mode: 'quick' is not one of fast, slow, usual\n"},
        {"-m", "tool: -m: the value FILE is missing\n"},
        {"--model --temp 1", "tool: --model: the value FILE is missing\n"},
        {"--flag=1", "tool: --flag does not accept a value\n"},
        {"model.gguf", "tool: unexpected argument 'model.gguf'; did you mean -m 'model.gguf'?\n"},
        {"builtin:chat",
         "tool: unexpected argument 'builtin:chat'; did you mean -m 'builtin:chat'?\n"},
        {"word", "tool: unexpected argument 'word'; see --help\n"},
        {"--\033[31mx", "tool: unknown flag '--\\x1b[31mx'; --help lists them\n"},
        {"-n \033[31m", "tool: -n: '\\x1b[31m' is not a whole number\n"},
        {"run", "tool: there is no command 'run': there is only one\n"},
        {"\xE2\x80\x94temp",
         "tool: '\xE2\x80\x94temp' begins with a long dash; flags begin with the hyphens of the "
         "keyboard: -temp or --temp\n"},
        {"-model x", "tool: unknown flag '-model'; did you mean '--model'?\n"},
        {"--npredict 5", "tool: unknown flag '--npredict'; did you mean '--n-predict'?\n"},
        {"-m a -m b", "tool: -m 'a' and -m 'b': this option has only one value; leave one of them "
                      "out\n"},
        {"-n 5 --predict=6",
         "tool: -n '5' and --predict '6': this option has only one value; leave "
         "one of them out\n"},
        {"--mode slow --mode fast", "tool: --mode 'slow' and --mode 'fast': this option has only "
                                    "one value; leave one of them out\n"},
        {"--my-model 1", "tool: there is no flag '--my-model': models are files\n"},
        {"--max-tokens", "tool: --max-tokens: the value N is missing\n"},
        {"--up=1", "tool: --up does not accept a value\n"},
        {"--warm=1", "tool: --warm does not accept a value\n"},
        {"--slowly=1", "tool: --slowly does not accept a value\n"},
        {"--heat", "tool: --heat: the value is missing\n"},
        {"--heat --flag", "tool: --heat: the value is missing\n"},
        {"-fa=x", "tool: -fa does not accept x\n"},
        {"--mode medium", "tool: there is no flag '--mode medium': too lukewarm\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(parse(cases[i].line, false), 2);
        CHECK_STR(out, cases[i].words);
    }
}

TEST(help_and_version) {
    CHECK_INT(parse("--help --nonsense", false), 0);
    CHECK_HAS(out, "usage: tool [options]\n\nDoes things.\n");
    CHECK_HAS(out, "\nGeneral:\n");
    CHECK_HAS(out, "\n  -n, --predict, --n-predict N\n                        tokens to predict "
                   "(default -1)\n");
    CHECK_HAS(out, "\n  --temp T              temperature (default 0.8)\n");
    CHECK_HAS(out, "that must be broken\n                        into several lines, as it");
    CHECK_HAS(out, "\n  -h, --help            print this and exit\n  --version ");
    CHECK_INT(parse("-h", false), 0);
    CHECK_INT(parse("--version", false), 0);
    CHECK(strncmp(out, "tool ", 5) == 0 && out[5] >= '0' && out[5] <= '9');
}

TEST(rows_are_found) {
    CHECK(args_find(OPTIONS, "--predict") == &OPTIONS[2]);
    CHECK(args_find(OPTIONS, "-n") == &OPTIONS[2]);
    CHECK(!args_find(OPTIONS, "--pred") && !args_find(OPTIONS, "") &&
          !args_find(OPTIONS, "--help"));
}

TEST(numbers) {
    const struct {
        const char *s;
        bool ok, range;
        double value;
    } floats[] = {
        {"0", true, false, 0},      {"-0.5", true, false, -0.5},   {"+1.", true, false, 1},
        {".5", true, false, 0.5},   {"1e3", true, false, 1000},    {"1E-3", true, false, 0.001},
        {"1e+2", true, false, 100}, {"", false, false, 0},         {".", false, false, 0},
        {"e1", false, false, 0},    {"1e", false, false, 0},       {"1e+", false, false, 0},
        {" 1", false, false, 0},    {"1 ", false, false, 0},       {"--1", false, false, 0},
        {"1.2.3", false, false, 0}, {"infinity", false, false, 0}, {"1e400", false, true, 0},
        {"1e-400", true, false, 0},
    };
    bool range;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        double f = 0;
        bool ok = args_read_float(floats[i].s, &f, &range);
        CHECK_MSG(ok == floats[i].ok && range == floats[i].range && f == floats[i].value, "'%s'",
                  floats[i].s);
    }
    int64_t n = 0;
    CHECK(args_read_int("-9223372036854775808", &n, &range) && n == INT64_MIN);
    CHECK(args_read_int("9223372036854775807", &n, &range) && n == INT64_MAX);
    CHECK(args_read_int("+7", &n, &range) && n == 7);
    CHECK(args_read_int("-0", &n, &range) && n == 0);
    CHECK(!args_read_int("9223372036854775808", &n, &range) && range);
    CHECK(!args_read_int("-9223372036854775809", &n, &range) && range);
    CHECK(!args_read_int("-", &n, &range) && !range);
    CHECK(!args_read_int("+-1", &n, &range) && !range);
    CHECK(!args_read_int("0x1", &n, &range) && !range);
}

TEST(whole_files) {
    char data[10000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (size_t n = 0; n <= sizeof data; n += n < 4090 || n > 4100 ? 818 : 1) {
        REQUIRE(test_write_file(test_path("file"), data, n));
        size_t size = 99;
        char *read = tool_read_file("tool", test_path("file"), &size);
        REQUIRE(read);
        CHECK(size == n && memcmp(read, data, n) == 0 && read[n] == '\0');
        free(read);
    }
}

TEST(token_ids) {
    static const struct {
        const char *s;
        size_t n;
        int32_t first, last;
    } good[] = {
        {"7", 1, 7, 7},
        {"1,2,3", 3, 1, 3},
        {" 1 , 2\n", 2, 1, 2},
        {"[4, 129, 206]", 3, 4, 206},
        {"[0]\n", 1, 0, 0},
        {"1,2,", 2, 1, 2},
        {"0,2147483647", 2, 0, INT32_MAX},
    };
    static const char *const bad[] = {"",     " ",    ",",          "[]",    "[",
                                      "1;2",  "1 2",  "1,,2",       "-1",    "+1",
                                      "0x1",  "1.5",  "2147483648", "a",     "99999999999999999999",
                                      "[1,2", "1,2]", "[1],2",      "[1] 2", "[[1]]",
                                      "1,2,x"};
    int32_t *id;
    size_t n;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (CHECK_INT(tool_read_ids("tool", "--tokens", good[i].s, &id, &n), -1))
            CHECK_MSG(n == good[i].n && id[0] == good[i].first && id[n - 1] == good[i].last, "'%s'",
                      good[i].s);
        ggl_free(id);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(tool_read_ids("tool", "--tokens", bad[i], &id, &n) == 2 && !id && n == 0, "'%s'",
                  bad[i]);
}
