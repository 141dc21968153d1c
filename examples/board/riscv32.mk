# RISC-V of 32 bits without floats, as qemu has it.
CC := riscv64-unknown-elf-gcc
AR := riscv64-unknown-elf-ar
BOARD_FLAGS := -march=rv32imac -mabi=ilp32 --specs=picolibc.specs -nostartfiles
BOARD_SOURCE := board.c
BOARD_LDFLAGS := -T riscv-virt.ld
BOARD_RUN := qemu-system-riscv32 -machine virt -bios none
