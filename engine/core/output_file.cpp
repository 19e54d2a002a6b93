#include "engine/core/output_file.h"

#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"

namespace paceline {

namespace fs = std::filesystem;

OutputFile::OutputFile(fs::path file, std::string option, std::string kind, IsOurs is_ours)
    : file_(std::move(file)),
      option_(std::move(option)),
      kind_(std::move(kind)),
      is_ours_(std::move(is_ours)) {
  // A link stands for what it leads to, also where that is yet to be made.
  constexpr int kMostLinks = 40;
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(file_, none)); ++i) {
    file_ = file_.parent_path() / fs::read_symlink(file_, none);
  }
}

void OutputFile::check_name() const {
  std::error_code none;
  const fs::file_status there = fs::symlink_status(file_, none);
  if (!fs::exists(there)) return;
  if (!fs::is_regular_file(there)) {
    throw Error(ErrorKind::input, "this is not a regular file", option_ + " " + file_.string(),
                "give another name");
  }
  if (!is_ours_) {
    throw Error(ErrorKind::input, "the file exists already", option_ + " " + file_.string(),
                "a " + kind_ + " never replaces a file: give another name");
  }
  if (may_replace()) return;
  throw Error(ErrorKind::input, "the file exists already and is no " + kind_,
              option_ + " " + file_.string(), "give another name, or move it away");
}

bool OutputFile::may_replace() const {
  try {
    const std::string content = read_text(file_);
    return content.empty() || is_ours_(content);
  } catch (const std::exception&) {
    return false;  // not to be read, or too long: no file of ours
  }
}

void OutputFile::check() const {
  check_name();
  check_writable(file_);
}

void OutputFile::write(std::string_view content) const {
  if (create_file(file_, content)) return;
  check_name();
  replace_file(file_, content);
}

}  // namespace paceline
