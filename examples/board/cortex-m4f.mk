# A Cortex-M4 with floats, as qemu has it.
CC := arm-none-eabi-gcc
AR := arm-none-eabi-ar
BOARD_FLAGS := -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -mthumb -nostartfiles
BOARD_SOURCE := board.c
BOARD_LDFLAGS := -T mps2-an386.ld
BOARD_RUN := qemu-system-arm -machine mps2-an386
