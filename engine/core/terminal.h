// Whether a stream supports colours and progress lines.
#pragma once

#include <cstddef>

namespace paceline {

// True for a terminal, unless NO_COLOR is set or TERM is "dumb".
bool colours_welcome(int file_descriptor);
bool is_terminal(int file_descriptor);
// Whether somebody can answer on standard input; a dumb terminal will do.
bool can_ask();
// 0 if it is not a terminal or its width is unknown.
std::size_t terminal_columns(int file_descriptor);
// The width for tables: the terminal's, or $COLUMNS; else 80, which suits job logs.
std::size_t columns_of_output(int file_descriptor);

}  // namespace paceline
