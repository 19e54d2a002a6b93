// Where this program lies.
#pragma once

#include <filesystem>

namespace paceline {

// The file to start for another process like this one, and beside which what was installed with it
// is looked for (../lib, ../share). A program started by the loader (ld.so PROGRAM) is the program,
// not the loader. One in a bundle's libexec is started through the script of its name in ../bin,
// which knows whether the system's C library will do. Empty if /proc does not tell.
std::filesystem::path program_file();

}  // namespace paceline
