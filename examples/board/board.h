/* What an example needs of a board: a place to write to, and an end. */
#ifndef BOARD_H
#define BOARD_H

/* Writes text to whoever runs the board. */
void board_say(const char *text);
/* Ends the program, which an emulator reports; a board stops. */
void board_end(int code);

#endif
