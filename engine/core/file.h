// Atomic file writes: files appear complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/hash.h"

namespace paceline {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close() noexcept;

 private:
  int number_ = -1;
};

// Replaces `file` atomically: writes an unnamed file (or a temporary one, if the file system has
// none), syncs it, and renames it. If killed, `file` is unchanged.
void replace_file(const std::filesystem::path& file, std::string_view content);

// The same, but fails if `file` exists. Returns false in that case, and changes nothing.
bool create_file(const std::filesystem::path& file, std::string_view content);

// Throws input if the functions above would. Leaves no file behind.
void check_writable(const std::filesystem::path& file);

// Whether something is there. Throws input where that cannot be known, as in a folder that may not
// be entered.
bool path_exists(const std::filesystem::path& path);

// Opens a file for flock(), and creates it for all whom the umask allows. A file of another user
// may be open for reading only. Returns -1 with errno; ELOOP: it is not a plain file of one name,
// which may be somebody else's.
int open_lock_file(const std::filesystem::path& file) noexcept;

// Renames `from` to `to` within a file system. Returns false and changes nothing if `to` exists.
bool give_name(const std::filesystem::path& from, const std::filesystem::path& to);

// A large file, written in pieces. The destructor removes it unless finish() was called, so it
// belongs in a folder that is renamed last (replace_folder).
class NewFile {
 public:
  explicit NewFile(std::filesystem::path file);  // `file` must not exist; throws input
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void finish();  // syncs and closes

  std::size_t bytes() const { return bytes_; }
  std::string hash() const { return hash_.hex(); }  // of the written bytes

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  Hash hash_;
};

// Renames the folder `from`, whose files are synced, to `to`, atomically and durably. An existing
// folder `to` is exchanged and removed.
void replace_folder(const std::filesystem::path& from, const std::filesystem::path& to);

// Creates the folder and its parents. Throws input naming the part that failed.
void make_folder(const std::filesystem::path& folder);

// A folder that is held open, and the names below it. Links below it are refused: in a shared or
// unpacked folder they may lead to the user's own files. The folder itself may be reached by one.
class Folder {
 public:
  // Created if need be. Throws input.
  explicit Folder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  // Not so if it was moved or removed since.
  bool is_at_path() const;
  // Where it is now; empty: it was removed, or /proc does not tell.
  std::filesystem::path find_path() const;

  // `name` may have several parts; those before the last are created. All throw input.
  void make_folder(const std::filesystem::path& name) const;
  // As the functions above.
  bool create_file(const std::filesystem::path& name, std::string_view content) const;
  void replace_file(const std::filesystem::path& name, std::string_view content) const;
  // For writing. A new file in any case, as an older one may have another name elsewhere.
  Descriptor open_new(const std::filesystem::path& name) const;
  Descriptor open_to_append(const std::filesystem::path& name) const;  // and to read
  // A file, or a folder with all that is in it, if it is there.
  void remove(const std::filesystem::path& name) const;

 private:
  Descriptor enter(const std::filesystem::path& folder) const;

  std::filesystem::path path_;
  Descriptor descriptor_;
};

// A new folder in TMPDIR, removed with its content by the destructor. If that process is killed,
// the next one of this user and host that makes a folder of this prefix removes it.
class ScratchFolder {
 public:
  static constexpr char kRunPrefix[] = "paceline-run";

  explicit ScratchFolder(const std::string& prefix);  // of its name; throws input
  ~ScratchFolder();
  static void remove_left(const std::string& prefix);  // by killed processes
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

// An output file with a user-given name. It never replaces a file of another kind, so that a typo
// on the command line destroys no data.

class OutputFile {
 public:
  using IsOurs = std::function<bool(std::string_view content)>;

  // `option` is the user's option; `kind` completes "and is not a trace". An existing file may be
  // replaced if it is empty or `is_ours` returns true. Without `is_ours` it may never be replaced.
  OutputFile(std::filesystem::path file, std::string option, std::string kind, IsOurs is_ours = {});

  // Call before the work. Throws input if another file exists.
  void check_name() const;
  // The same, and checks that the file can be written.
  void check() const;

  // Writes atomically. Checks the existing file again.
  void write(std::string_view content) const;

 private:
  bool may_replace() const;

  std::filesystem::path file_;
  std::string option_, kind_;
  IsOurs is_ours_;
};

// Where this program lies.

// The file to start for another process like this one, and beside which what was installed with it
// is looked for (../lib, ../share). A program started by the loader (ld.so PROGRAM) is the program,
// not the loader. One in a bundle's libexec is started through the script of its name in ../bin,
// which knows whether the system's C library will do. Empty if /proc does not tell.
std::filesystem::path program_file();

}  // namespace paceline
