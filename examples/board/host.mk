# This machine.
CC := cc
AR := ar
BOARD_FLAGS :=
BOARD_SOURCE := host.c
BOARD_LDFLAGS :=
BOARD_RUN :=
