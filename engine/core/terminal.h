// Whether colours and moving progress lines are welcome on a stream.
#pragma once

namespace paceline {

// A terminal, NO_COLOR not set, TERM not "dumb".
bool colours_welcome(int file_descriptor);
bool is_terminal(int file_descriptor);

}  // namespace paceline
