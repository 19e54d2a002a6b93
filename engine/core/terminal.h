// Whether colours and moving progress lines are welcome on a stream.
#pragma once

#include <cstddef>

namespace paceline {

// A terminal, NO_COLOR not set, TERM not "dumb".
bool colours_welcome(int file_descriptor);
bool is_terminal(int file_descriptor);
// 0 where it is no terminal, or none that says how wide it is.
std::size_t terminal_columns(int file_descriptor);
// How wide a table may be: as the terminal is, or $COLUMNS has it; else 80, which fits a job's log.
std::size_t columns_of_output(int file_descriptor);

}  // namespace paceline
