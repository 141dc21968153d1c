# A Cortex-M3, which has no floats, as qemu has it.
CC := arm-none-eabi-gcc
AR := arm-none-eabi-ar
BOARD_FLAGS := -mcpu=cortex-m3 -mfloat-abi=soft -mthumb -nostartfiles
BOARD_SOURCE := board.c
BOARD_LDFLAGS := -T mps2-an386.ld
BOARD_RUN := qemu-system-arm -machine mps2-an385
