/* Words for a shell: what sh reads back is the name itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shell_quote.h"
#include "test.h"

static void expect(const char *name, const char *want) {
    char word[LLM_SHELL_WORD];
    CHECK_STR(llm_shell_quote(word, name), want);
}

/* Lets a shell print the word, and compares it with the path. */
static void read_back(const char *shell, const char *name, const char *want) {
    char word[LLM_SHELL_WORD], command[2 * LLM_SHELL_WORD], seen[256] = "";
    snprintf(command, sizeof command, "printf %%s %s", llm_shell_quote(word, name));
    FILE *f = fopen("shell_quote.sh", "w");
    fputs(command, f);
    fclose(f);
    snprintf(command, sizeof command, "%s shell_quote.sh", shell);
    f = popen(command, "r");
    if (CHECK(f != NULL)) {
        seen[fread(seen, 1, sizeof seen - 1, f)] = '\0';
        CHECK_INT(pclose(f), 0);
    }
    CHECK_STR(seen, want);
    remove("shell_quote.sh");
}

TEST(names_are_quoted) {
    expect("model.gguf", "'model.gguf'");
    expect("my model.gguf", "'my model.gguf'");
    expect("it's", "'it'\\''s'");
    expect("", "''");
    expect("-m.gguf", "'./-m.gguf'");
    expect("\xe6\x97\xa5", "'\xe6\x97\xa5'"); /* UTF-8 is shown, and needs no escape */
    expect("a\nb'\\7", "$'a\\012b\\'\\\\7'");
    expect("\xff"
           "7",
           "$'\\3777'");
}

TEST(a_shell_reads_the_name_back) {
    static const char *const names[] = {"it's \"a\" $HOME `dir` \\ *", "''", "a b", "$'x'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        read_back("sh", names[i], names[i]);
    read_back("sh", "-n", "./-n");
    if (system("bash -c true 2>/dev/null") == 0) /* other shells may not know $'..' */
        read_back("bash",
                  "line\nfeed's\t\x1b[7m\xff"
                  "7\\n",
                  "line\nfeed's\t\x1b[7m\xff"
                  "7\\n");
}

TEST(what_does_not_fit_becomes_a_word) {
    char name[3 * LLM_SHELL_WORD];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    expect(name, "FILE");
    memset(name, '\'', LLM_SHELL_WORD / 4);
    name[LLM_SHELL_WORD / 4] = '\0';
    expect(name, "FILE");
    name[LLM_SHELL_WORD / 8] = '\0';
    char word[LLM_SHELL_WORD];
    CHECK_INT(strlen(llm_shell_quote(word, name)), 4 * (LLM_SHELL_WORD / 8) + 2);
}
