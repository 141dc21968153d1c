/* Shared by the files that read and write a Hugging Face tokenizer. */
#ifndef LLM_HF_TOKENIZER_IMPL_H
#define LLM_HF_TOKENIZER_IMPL_H

#include "ggl/internal/file.h"
#include "ggl/internal/index.h"
#include "hf_tokenizer.h"
#include "sentence_pieces.h"

#define LLM_HF_MAX_FILE ((size_t)256 << 20) /* bytes */

enum { BOS, EOS, UNK, PAD, EOT, EOM, CLS, SEP, MASK, N_ID };

enum { LLM_HF_MOST_ENDS = 64, LLM_HF_MOST_TYPES = 1 << 16 };

/* A part of two texts side by side: a token, or one of the texts, as the key tokenizer.ggl.pair has them. */
enum { LLM_HF_FIRST = -1, LLM_HF_SECOND = -2 };
typedef struct llm_hf_part {
    int32_t id, type;
} llm_hf_part;

/* What texts begin or end with. */
typedef struct llm_hf_ends {
    int32_t id[LLM_HF_MOST_ENDS];
    size_t n;
} llm_hf_ends;

struct llm_hf_tokenizer {
    ggl_arena arena;
    const char *folder;
    /* parsed files; NULL: absent */
    llm_json *file, *config, *vocab, *added;
    /* tokenizer.json beside SentencePiece's file, which has the pieces: for its added tokens, ends and normalizer */
    llm_json *beside;
    llm_json *generation;   /* generation_config.json */
    llm_json *tekken;       /* tekken.json, if it is read */
    sentence_pieces pieces; /* of SentencePiece, from the mapped file */
    ggl_file_map map;
    const json_value *model_config;
    char *merges_text, *template_text;
    size_t template_n;
    bool is_alone;    /* a tokenizer.json without a model's folder */
    bool bytes;       /* byte-level BPE, model "gpt2"; else "llama" */
    bool words;       /* WordPiece, model "bert" */
    bool is_world;    /* RWKV's, model "rwkv" */
    bool needs_steps; /* GGUF's own keys do not say what tokenizer.json says */
    bool is_odd;      /* GGUF has no model that is like it: other programs refuse the file */
    bool is_marked;   /* its pieces that begin words have a mark, as files of "bert" spell them */
    ggl_str steps;    /* what tokenizer.ggl.steps will be */
    int lower, strip; /* of WordPiece and Unigram: flags of the normalizer; -1: unknown */
    ggl_str *piece;
    int32_t *type;
    float *score;
    double *exact_score; /* if those are not; NULL: they are */
    bool *in_model;      /* [n]: the id is one of the model's, not only an added one */
    int64_t n_model;     /* tokens of the model */
    /* n: ids of the model; n_ids: up to the tokenizer's last one; n_given: entries in the files,
     * in which added tokens count again */
    int64_t n, n_ids, n_given;
    ggl_index by_piece;
    /* pieces that cut the text to read, if these are not the tokens; n_source 0: they are */
    ggl_str *source;
    float *source_score;
    int64_t n_source;
    ggl_str *merge;
    size_t n_merge;
    int32_t *merge_id; /* [2 n_merge_id]: pairs, if `merge` cannot have them; NULL: it can */
    size_t n_merge_id;
    ggl_str pre; /* s NULL: unknown */
    int64_t id[N_ID];
    int add_bos, add_eos, add_space; /* -1: unknown */
    llm_hf_ends ends[2];             /* what the post_processor adds before and behind a text */
    bool has_ends;                   /* and nothing else says otherwise */
    llm_hf_part *pair; /* [n_pair]: and what it makes of two texts; NULL: it is not there */
    size_t n_pair;
    bool is_typed;     /* its class gives models the types of tokens */
    ggl_str chat;      /* chat template; s NULL: none */
    ggl_str languages; /* tokens with which texts name their language, a space between; n 0: none */
    ggl_str after;     /* special tokens behind those of a file of pieces, in the same way */
    int64_t first_language; /* beside a vocab.json: the id of the first one */
    int64_t n_cut;          /* tokens that were dropped */
    const char *note[24];
    int n_note;
};

/* hf_tokenizer_files.c: */
ggl_status llm_hf_no_memory(ggl_error *err);
/* Adds a note, whose text is in the arena. False: out of memory. */
bool llm_hf_note(llm_hf_tokenizer *t, const char *text);
int llm_hf_shown(ggl_str s); /* returns a length for %.*s */
/* Returns the path of a file of the folder, in the arena; NULL: out of memory. */
char *llm_hf_path(llm_hf_tokenizer *t, const char *name);
/* True if the folder has this name. A link to a file that is missing, as of a download that was broken off, is there:
 * opening it fails, with a message. */
bool llm_hf_is_there(const char *path);
/* Read a text, which the caller frees with ggl_free, and a JSON file of the folder. *text and *out stay NULL if there is none. */
GGL_NODISCARD ggl_status llm_hf_read_text(llm_hf_tokenizer *t, const char *name, char **text,
                                          size_t *n, ggl_error *err);
GGL_NODISCARD ggl_status llm_hf_read_optional(llm_hf_tokenizer *t, const char *name, llm_json **out,
                                              ggl_error *err);

/* hf_ordered.c: makes the merges of tokens 0 .. n - 1, token[n]: their bytes, from their order, and notes tokens that no text becomes. */
GGL_NODISCARD ggl_status llm_hf_merges_by_order(llm_hf_tokenizer *t, const ggl_str *token,
                                                int64_t n, ggl_error *err);
/* Returns how byte-level BPE spells these bytes, in the arena; NULL: out of memory. */
char *llm_hf_spell(llm_hf_tokenizer *t, ggl_str bytes);

/* hf_tekken.c: reads t->tekken; and the ids of tokens that have a use, which no other file names. */
GGL_NODISCARD ggl_status llm_hf_read_tekken(llm_hf_tokenizer *t, const llm_hf_vocab *size,
                                            ggl_error *err);
void llm_hf_set_tekken_ids(llm_hf_tokenizer *t);
/* hf_ranks.c: whether the text's first line is a token and its rank, as tiktoken has them. */
bool llm_hf_is_ranks(const char *path);
/* Reads such a file of the folder. GGL_UNSUPPORTED: the class of the tokenizer is not known. */
GGL_NODISCARD ggl_status llm_hf_read_ranks(llm_hf_tokenizer *t, const char *name,
                                           const llm_hf_vocab *size, ggl_error *err);

/* hf_world.c: reads RWKV's file of words, and sets the template of chats that its models were trained with: many folders have none. */
GGL_NODISCARD ggl_status llm_hf_read_world(llm_hf_tokenizer *t, const char *name,
                                           const llm_hf_vocab *size, ggl_error *err);
/* hf_world_spelling.c: returns bytes as GGUF has those of that kind of tokenizer, as Python's repr writes them, without quotes, in the arena; s NULL: out of memory. */
ggl_str llm_hf_spell_world(llm_hf_tokenizer *t, ggl_str bytes);

/* hf_times.c: */
/* Names the tokens of times, from id `first` on. */
GGL_NODISCARD ggl_status llm_hf_name_times(llm_hf_tokenizer *t, int64_t first, ggl_error *err);
/* Of a tokenizer with <|notimestamps|>: sets the token that ends a text, if it is unknown; and if the tokens end there, names those of times, for which
 * the model must have rows. GGL_FORMAT: it has another number of them. */
GGL_NODISCARD ggl_status llm_hf_complete_speech(llm_hf_tokenizer *t, ggl_error *err);

/* hf_vocabulary.c: returns a token's id, or -1. */
int64_t llm_hf_find_piece(const llm_hf_tokenizer *t, ggl_str s);
/* Reads the tokens of a `vocab` object, and the added ones. */
GGL_NODISCARD ggl_status llm_hf_read_pieces(llm_hf_tokenizer *t, const json_value *vocab,
                                            const llm_hf_vocab *size, ggl_error *err);
/* Makes room in t->pieces for a token of each line of t->merges_text [n], and `more`. GGL_FORMAT: there are no lines. */
GGL_NODISCARD ggl_status llm_hf_make_room_for_lines(llm_hf_tokenizer *t, size_t n, int64_t more,
                                                    int64_t *lines, ggl_error *err);
/* Reads the tokens of a list: of SentencePiece, which have scores, or, if t->bytes is set, as byte-level BPE spells them. */
GGL_NODISCARD ggl_status llm_hf_read_sentence_pieces(llm_hf_tokenizer *t, const sentence_pieces *p,
                                                     const llm_hf_vocab *size, ggl_error *err);

/* hf_merges.c: reads the merges of tokenizer.json, or of merges.txt (n bytes at s). */
GGL_NODISCARD ggl_status llm_hf_merges_from_json(llm_hf_tokenizer *t, const json_value *list,
                                                 ggl_error *err);
GGL_NODISCARD ggl_status llm_hf_merges_from_text(llm_hf_tokenizer *t, const char *s, size_t n,
                                                 ggl_error *err);
/* Checks that each merge makes a token out of two tokens, as the library that writes these files
 * requires. */
GGL_NODISCARD ggl_status llm_hf_check_merges(llm_hf_tokenizer *t, ggl_error *err);
/* Drops merges whose tokens or result were dropped. */
GGL_NODISCARD ggl_status llm_hf_cut_merges(llm_hf_tokenizer *t, ggl_error *err);
/* Makes scores from the merges. */
GGL_NODISCARD ggl_status llm_hf_make_scores(llm_hf_tokenizer *t, ggl_error *err);

/* hf_tokenizer_keys.c: returns the class that tokenizer_config.json names, else config.json, else the kind of model, in buf; "" if
 * there is none. */
const char *llm_hf_class_or_kind(const llm_hf_tokenizer *t, char *buf, size_t size);
/* Sets t->pre, the name of the pre-tokenizer, or adds a note that it is
 * unknown. */
GGL_NODISCARD ggl_status llm_hf_set_pre(llm_hf_tokenizer *t, ggl_error *err);
/* Takes the next of some words, a space between, off *list. False: there are no more. */
bool llm_hf_next_word(ggl_str *list, ggl_str *word);
void llm_hf_set_flags(llm_hf_tokenizer *t); /* add_bos, add_eos and add_space */
/* Sets t->id: tokenizer_config.json names the token, else config.json has its id or a list of ids. Notes ids of config.json that
 * are no tokens, and another token that begins texts. */
GGL_NODISCARD ggl_status llm_hf_set_ids(llm_hf_tokenizer *t, ggl_error *err);
/* Gives tokens that end a text the ids eos, eot and eom. Notes those left over. */
GGL_NODISCARD ggl_status llm_hf_set_ends(llm_hf_tokenizer *t, ggl_error *err);

/* hf_words.c: reads the model of a tokenizer.json, of the type WordPiece; a vocab.txt of n bytes. */
GGL_NODISCARD ggl_status llm_hf_read_words(llm_hf_tokenizer *t, const llm_hf_vocab *size,
                                           ggl_error *err);
/* Of the type WordLevel. */
GGL_NODISCARD ggl_status llm_hf_read_levels(llm_hf_tokenizer *t, const llm_hf_vocab *size,
                                            ggl_error *err);
GGL_NODISCARD ggl_status llm_hf_read_word_list(llm_hf_tokenizer *t, const char *text, size_t n,
                                               const llm_hf_vocab *size, ggl_error *err);
void llm_hf_set_words(llm_hf_tokenizer *t); /* the flags */
/* Spells the pieces as files do; nothing can be looked up by its spelling afterwards. */
GGL_NODISCARD ggl_status llm_hf_spell_words(llm_hf_tokenizer *t, ggl_error *err);

/* hf_unigram.c: reads the model of a tokenizer.json, of the type Unigram, and what it does to a text first. */
GGL_NODISCARD ggl_status llm_hf_read_unigram(llm_hf_tokenizer *t, const llm_hf_vocab *size,
                                             ggl_error *err);
/* Sets the ids of the unknown token, and of what its post_processor adds to a text. */
GGL_NODISCARD ggl_status llm_hf_set_unigram_ends(llm_hf_tokenizer *t, ggl_error *err);

/* hf_steps.c: true if GGUF's keys alone would give other tokens than tokenizer.json. */
/* True if the normalizer is NFC, of a model for which GGUF has a key for that. */
bool llm_hf_composes(const json_value *root);
bool llm_hf_needs_steps(const llm_hf_tokenizer *t);
/* True if each byte, as byte-level BPE spells it, is a token. */
bool llm_hf_has_all_bytes(const llm_hf_tokenizer *t);
/* Checks the version of tokenizer.json, and that flags are true, false or null. GGL_FORMAT, GGL_UNSUPPORTED. */
GGL_NODISCARD ggl_status llm_hf_check_file(const llm_hf_tokenizer *t, ggl_error *err);
/* Checks all steps. GGL_UNSUPPORTED: one is not known, and is named. */
GGL_NODISCARD ggl_status llm_hf_check_steps(llm_hf_tokenizer *t, ggl_error *err);
/* Checks that added tokens have the ids that the library gives them. */
GGL_NODISCARD ggl_status llm_hf_check_added(const llm_hf_tokenizer *t, ggl_error *err);
/* hf_ends.c: sets t->ends, and the ids of what texts begin and end with, from the post_processor. */
GGL_NODISCARD ggl_status llm_hf_set_template_ends(llm_hf_tokenizer *t, ggl_error *err);
/* Writes the ends that GGUF's keys cannot have. */
void llm_hf_put_ends(const llm_hf_tokenizer *t, ggl_gguf_writer *w);
/* hf_steps.c: makes t->steps; writes it. */
GGL_NODISCARD ggl_status llm_hf_make_steps(llm_hf_tokenizer *t, ggl_error *err);
void llm_hf_put_steps(const llm_hf_tokenizer *t, ggl_gguf_writer *w);

/* hf_sentence.c: reads a tokenizer.model. */
GGL_NODISCARD ggl_status llm_hf_read_sentence_model(llm_hf_tokenizer *t, const char *path,
                                                    const llm_hf_vocab *size, ggl_error *err);
/* Reads Marian's files: source.spm, whose pieces cut the text to read, and vocab.json, which has
 * the ids. */
GGL_NODISCARD ggl_status llm_hf_read_source_model(llm_hf_tokenizer *t, const char *path,
                                                  const llm_hf_vocab *size, ggl_error *err);

#endif
