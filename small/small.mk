# Builds the runtime for small boards, and programs with it: see docs/small.md.
#
#   make -f small/small.mk OUT=build/board CC=arm-none-eabi-gcc CFLAGS="-mcpu=cortex-m4 .." runtime     OUT/libsmall.a
#   make -f small/small.mk OUT=build/board .. SOURCES="plan.c main.c" program                           OUT/program
#
# Only what a plan names is linked: each function is in a section of its own.
ROOT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))/..
OUT ?= build/small
CC ?= cc
AR ?= ar
CFLAGS ?= -O2
FLAGS := -std=c99 -ffp-contract=off -fno-math-errno -ffunction-sections -fdata-sections -I$(ROOT)/small

SHARED_FLAGS := -I$(ROOT)/ggml-lite/include -I$(ROOT)/ggml-lite -I$(ROOT)/models/include -I$(ROOT)/models

# The arithmetic is that of the large engine: its portable kernels, which the files here include, and these.
SHARED := $(addprefix $(ROOT)/ggml-lite/,base/exact_fma.c base/math_float.c base/math_double.c base/show.c graph/store_layout.c quant/plain.c \
    $(addprefix quant/,q8_0.c q4_0.c q4_1.c q5.c q2_k.c q3_k.c q4_k_q5_k.c q6_k.c iq1.c iq2.c iq3.c iq4.c iq_grids.c fp4.c tq.c q1_0.c))
SHARED += $(addprefix $(ROOT)/models/,sample/candidates.c sample/rng.c text/merge_queue.c text/pretok.c text/pretok_compile.c text/unicode.c text/unicode_tables.c)
OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(notdir $(wildcard $(ROOT)/small/*.c) $(SHARED)))
vpath %.c $(ROOT)/small $(ROOT)/ggml-lite/base $(ROOT)/ggml-lite/graph $(ROOT)/ggml-lite/quant $(ROOT)/models/sample $(ROOT)/models/text

runtime: $(OUT)/libsmall.a
program: $(OUT)/program

$(OUT)/%.o: %.c
	@mkdir -p $(OUT)
	$(CC) $(FLAGS) $(CFLAGS) $(SHARED_FLAGS) -c $< -o $@

$(OUT)/libsmall.a: $(OBJECTS)
	$(AR) rcs $@ $(OBJECTS)

$(OUT)/program: $(OUT)/libsmall.a $(SOURCES)
	$(CC) $(FLAGS) $(CFLAGS) $(SHARED_FLAGS) $(SOURCES) $(OUT)/libsmall.a -Wl,--gc-sections $(LDFLAGS) -lm -o $@

.PHONY: runtime program
