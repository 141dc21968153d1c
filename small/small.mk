# Builds the runtime for small boards, and programs with it: docs/small.md. An example, from a model to a board that qemu emulates:
#
#   make -f small/small.mk BOARD=cortex-m4f MODEL=builtin:stories CTX=64 run
#
# and the parts:
#
#   make -f small/small.mk OUT=build/board CC=arm-none-eabi-gcc AR=arm-none-eabi-ar CFLAGS="-O2 -mcpu=cortex-m4 .." runtime    OUT/libsmall.a
#   make -f small/small.mk .. SOURCES="plan.c main.c" program                                              OUT/program
#
# Only what a plan names is linked: each function is in a section of its own.
ROOT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))/..
# make parts names at spaces, and knows none that have some.
ifeq ($(wildcard $(ROOT)/small/small.mk),)
$(error the path of small.mk has a space, which make cannot have in names: enter the folder first, cd "FOLDER" && make -f small/small.mk ..)
endif
BOARDS := $(ROOT)/examples/board
OUT ?= build/small
ifneq ($(words $(OUT)),1)
$(error OUT='$(OUT)' has a space, which make cannot have in names: choose another folder)
endif
CC ?= cc
AR ?= ar
CFLAGS ?= -O2
FLAGS := -std=c99 -ffp-contract=off -fno-math-errno -ffunction-sections -fdata-sections -I$(ROOT)/small
SHARED_FLAGS := -I$(ROOT)/ggml-lite/include -I$(ROOT)/ggml-lite -I$(ROOT)/models/include -I$(ROOT)/models

# Of the example: a board of examples/board, the program that compiles models, a model with a context, and the board's RAM.
LLM_ARCH ?= llm-arch
MODEL ?= builtin:stories
CTX ?= 64
RAM ?= 131072
TYPE ?=
comma := ,
B := $(OUT)
ifdef BOARD
ifeq ($(wildcard $(BOARDS)/$(BOARD).mk),)
$(error BOARD=$(BOARD) is none of $(sort $(notdir $(basename $(wildcard $(BOARDS)/*.mk)))))
endif
include $(BOARDS)/$(BOARD).mk
B := $(OUT)/$(BOARD)
FLAGS += $(BOARD_FLAGS) -I$(BOARDS) -I$(B)
PROGRAM_SOURCES := $(BOARDS)/$(BOARD_SOURCE) $(or $(SOURCES),$(B)/plan.c $(BOARDS)/story.c)
LINK := $(if $(BOARD_LDFLAGS),-L$(BOARDS) $(BOARD_LDFLAGS) -Wl$(comma)--defsym=board_ram=$(RAM))
else
PROGRAM_SOURCES := $(SOURCES)
ifneq ($(filter run program,$(MAKECMDGOALS)),)
ifeq ($(SOURCES),)
$(error BOARD=NAME or SOURCES=FILES is missing: the program to make; boards are $(sort $(notdir $(basename $(wildcard $(BOARDS)/*.mk)))))
endif
endif
endif

# The arithmetic is that of the large engine: its portable kernels, which the files here include, and these.
TEXT := bert_words.c charsmap.c fold.c merge_queue.c pretok.c pretok_compile.c unicode.c unicode_forms.c unicode_steps.c unicode_tables.c
SHARED := $(addprefix $(ROOT)/ggml-lite/,base/exact_fma.c base/math_float.c base/math_double.c base/show.c graph/store_layout.c quant/plain.c \
    $(addprefix quant/,q8_0.c q4_0.c q4_1.c q5.c q2_k.c q3_k.c q4_k_q5_k.c q6_k.c iq1.c iq2.c iq3.c iq4.c iq_grids.c iqk.c fp4.c tq.c q1_0.c))
SHARED += $(addprefix $(ROOT)/models/,sample/candidates.c sample/rng.c $(addprefix text/,$(TEXT)))
OBJECTS := $(patsubst %.c,$(B)/%.o,$(notdir $(wildcard $(ROOT)/small/*.c) $(SHARED)))
# The tokenizers alone.
WORDS := $(patsubst %.c,$(B)/%.o,best.c longest.c memory.c scores.c show.c split.c text.c wordpiece.c $(TEXT))
vpath %.c $(ROOT)/small $(ROOT)/ggml-lite/base $(ROOT)/ggml-lite/graph $(ROOT)/ggml-lite/quant $(ROOT)/models/sample $(ROOT)/models/text

# Files that change when what they say does, so that everything made of it is made again.
quoted = '$(subst ','\'',$(1))'
$(B)/model.is: SAYS = $(MODEL) $(CTX) $(TYPE) $(LLM_ARCH)
$(B)/flags.is: SAYS = $(CC) $(AR) $(FLAGS) $(CFLAGS) $(SHARED_FLAGS)
$(B)/link.is: SAYS = $(PROGRAM_SOURCES) $(LINK) $(LDFLAGS)
$(B)/%.is: FORCE
	@mkdir -p $(B)
	@printf '%s\n' $(call quoted,$(SAYS)) | cmp -s - $@ || printf '%s\n' $(call quoted,$(SAYS)) >$@

runtime: $(B)/libsmall.a
words: $(B)/libwords.a
program: $(B)/program
run: $(B)/program
	$(if $(BOARD_RUN),$(BOARD_RUN) -nographic -monitor none -serial none -semihosting-config enable=on$(comma)target=native -kernel) $(B)/program

$(B)/plan.c: $(B)/model.is $(wildcard $(MODEL))
	$(LLM_ARCH) compile $(call quoted,$(MODEL)) -c $(CTX) $(if $(TYPE),--type $(TYPE)) -o $@

$(B)/%.o: %.c $(B)/flags.is
	$(CC) $(FLAGS) $(CFLAGS) $(SHARED_FLAGS) -c $< -o $@

$(B)/libsmall.a: $(OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $(OBJECTS)

$(B)/libwords.a: $(WORDS)
	@rm -f $@
	$(AR) rcs $@ $(WORDS)

$(B)/program: $(B)/libsmall.a $(PROGRAM_SOURCES) $(B)/link.is
	$(CC) $(FLAGS) $(CFLAGS) $(SHARED_FLAGS) $(PROGRAM_SOURCES) $(B)/libsmall.a -Wl,--gc-sections $(LINK) $(LDFLAGS) -lm -o $@

clean:
	rm -rf $(B)

FORCE:
.PHONY: runtime words program run clean FORCE
