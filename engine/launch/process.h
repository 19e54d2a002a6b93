// Whether a process of this machine lives.
#pragma once

namespace paceline {

enum class ProcessState { none, stopped, alive };

// A zombie is none: it has ended, and only waits for its parent to ask how. stopped: by SIGSTOP, a
// terminal or a debugger. By /proc.
ProcessState state_of_process(int pid);

}  // namespace paceline
