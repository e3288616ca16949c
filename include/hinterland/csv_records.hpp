// Inside of csv.hpp: a file of comma-separated values, record by record (RFC 4180): fields that contain separators,
// line ends or quotation marks are in quotation marks, and a quotation mark in them is written twice. Lines end with
// LF or CR LF; empty lines are passed over; a byte order mark at the beginning, too.
//
// One record is in memory at a time. Not for several threads at a time.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hl::far {

// A file that cannot be read, or in which something is wrong: what() says where, what, and what to do. `line` counts
// from 1, and is 0 where it is the whole file; `column` is the name of the column, or "".
class csv_error : public std::runtime_error {
 public:
  csv_error(const std::string& path, std::size_t line, const std::string& column, const std::string& what)
      : std::runtime_error(path + (line != 0 ? ", line " + std::to_string(line) : "") +
                           (column.empty() ? "" : ", column '" + column + "'") + ": " + what),
        line_(line),
        column_(column) {}
  std::size_t line() const noexcept { return line_; }
  const std::string& column() const noexcept { return column_; }

 private:
  std::size_t line_;
  std::string column_;
};

namespace inside {

class csv_records {
 public:
  // More than any record should have; so much is read before a quotation mark that is missing is noticed.
  static constexpr std::size_t record_bytes_max = std::size_t{16} << 20;

  // Opens the file: csv_error where that fails.
  csv_records(std::string path, char separator)
      : path_(std::move(path)),
        separator_(separator),
        file_(std::fopen(path_.c_str(), "rbe")),
        buffer_(buffer_bytes) {
    if (file_ == nullptr) fail_file("cannot be opened: ");
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // there is a buffer here
    if (struct stat about; fstat(fileno(file_.get()), &about) == 0 && S_ISREG(about.st_mode))
      file_bytes_ = static_cast<std::uint64_t>(about.st_size);
    fill();
    if (end_ - at_ >= 3 && std::memcmp(&buffer_[at_], "\xef\xbb\xbf", 3) == 0) at_ += 3;
  }

  // The next record; false behind the last. csv_error.
  bool next() {
    text_.clear();
    fields_.clear();
    if (!pass_empty_lines()) return false;
    line_ = lines_ + 1;
    while (field()) {
    }
    return true;
  }
  std::size_t fields() const noexcept { return fields_.size(); }
  // Valid until next().
  std::string_view field(std::size_t number) const noexcept {
    const std::size_t first = number == 0 ? 0 : fields_[number - 1];
    return std::string_view(text_).substr(first, fields_[number] - first);
  }
  // Where the record begins.
  std::size_t line() const noexcept { return line_; }
  // So many records like those so far may be in the file. 0: nobody knows.
  std::size_t records_likely(std::size_t so_far) const noexcept {
    const std::uint64_t used = read_bytes_ - (end_ - at_);
    if (file_bytes_ <= used) return 0;
    return static_cast<std::size_t>(static_cast<double>(so_far) * 1.02 * static_cast<double>(file_bytes_) /
                                    static_cast<double>(used)) +
           1;
  }

  [[noreturn]] void fail(std::size_t line, const std::string& column, const std::string& what) const {
    throw csv_error(path_, line, column, what);
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
  struct closes {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  [[noreturn]] void fail_file(const char* what) const { fail(0, "", what + std::string(std::strerror(errno))); }

  // False at the end of the file.
  bool fill() {
    at_ = 0;
    end_ = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (end_ == 0 && std::ferror(file_.get()) != 0) fail_file("cannot be read: ");
    read_bytes_ += end_;
    return end_ != 0;
  }
  static constexpr int no_more = -1;
  int peek() { return at_ < end_ || fill() ? static_cast<unsigned char>(buffer_[at_]) : no_more; }

  bool pass_empty_lines() {
    for (;; ++at_) {
      const int c = peek();
      if (c == no_more) return false;
      if (c == '\n')
        ++lines_;
      else if (c != '\r')
        return true;
    }
  }

  // One field, and what ends it. False: it was the record's last.
  bool field() {
    const bool quoted = peek() == '"';
    if (quoted)
      quoted_text();
    else
      plain_text();
    int end = peek();
    if (quoted && end == '\r') end = (++at_, peek());
    if (quoted && end != no_more && end != '\n' && end != static_cast<unsigned char>(separator_))
      fail(lines_ + 1, number(),
           "text follows the closing quotation mark; a quotation mark within a field is written "
           "twice, and such a field stands in quotation marks");
    fields_.push_back(text_.size());
    if (end == no_more) return false;
    ++at_;
    if (end != '\n') return true;
    ++lines_;
    return false;
  }

  void plain_text() {
    const std::size_t first = text_.size();
    for (int c = peek(); c != no_more; c = peek()) {
      std::size_t end = at_;
      while (end < end_ && buffer_[end] != separator_ && buffer_[end] != '\n' && buffer_[end] != '"') ++end;
      append(end);
      if (at_ == end_) continue;
      if (buffer_[at_] == '"')
        fail(lines_ + 1, number(),
             "a quotation mark in a field that does not begin with one; put the field into "
             "quotation marks, and write those within it twice");
      if (buffer_[at_] == '\n' && text_.size() > first && text_.back() == '\r') text_.pop_back();
      return;
    }
  }
  void quoted_text() {
    const std::size_t began = lines_ + 1;
    ++at_;
    for (int c = peek(); c != no_more; c = peek()) {
      std::size_t end = at_;
      for (; end < end_ && buffer_[end] != '"'; ++end) lines_ += buffer_[end] == '\n' ? 1 : 0;
      append(end);
      if (at_ == end_) continue;
      ++at_;
      if (peek() != '"') return;
      text_.push_back('"');
      ++at_;
    }
    fail(began, number(), "the file ends within quotation marks that open here; close them");
  }
  void append(std::size_t end) {
    if (text_.size() + (end - at_) > record_bytes_max)
      fail(line_, number(),
           "the record that begins here has more than 16 MiB; is a quotation mark missing, or is this "
           "no file of comma-separated values?");
    text_.append(&buffer_[at_], end - at_);
    at_ = end;
  }
  std::string number() const { return std::to_string(fields_.size() + 1); }

  std::string path_;
  char separator_;
  std::unique_ptr<std::FILE, closes> file_;
  std::uint64_t file_bytes_ = 0;  // 0: a pipe
  std::uint64_t read_bytes_ = 0;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;      // what is left in the buffer
  std::size_t lines_ = 0, line_ = 0;  // that have ended; where the record began
  std::string text_;                  // of all fields of the record
  std::vector<std::size_t> fields_;   // where each ends
};

}  // namespace inside

}  // namespace hl::far
