#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <streambuf>
#include <string>
#include <string_view>

#include "raptor/support/error.hpp"

namespace raptor::sim::timing {

/// A file as a stream of text, block by block; gzip and zlib data are inflated on the way, however large they become.
/// Errors: io where it cannot be opened (`what`, then the path), malformed where compressed data are damaged, capacity where JSON that
/// was compressed has a name or a value of more than `most_token` characters: a small file must not make a reader hold a large one.
class text_source : public std::streambuf {
 public:
  static constexpr std::size_t most_token = std::size_t{1} << 20;

  text_source(const std::filesystem::path& file, const std::string& what) : in_(file, std::ios::binary) {
    if (!in_) throw error(error_code::io, what + ": " + file.string());
    fill();
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(raw_[i]); };
    const bool gzip = held_ > 2 && byte(0) == 0x1f && byte(1) == 0x8b;
    const bool zlib = held_ > 2 && byte(0) == 0x78 && (byte(0) * 256 + byte(1)) % 31 == 0;
    compressed_ = gzip || zlib;
    if (!compressed_) {
      setg(raw_.data(), raw_.data(), raw_.data() + held_);
      return;
    }
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) throw error(error_code::internal, "zlib cannot start");
    give();
  }
  text_source(const text_source&) = delete;
  text_source& operator=(const text_source&) = delete;
  ~text_source() override {
    if (compressed_) inflateEnd(&stream_);
  }

 protected:
  int_type underflow() override {
    if (gptr() != egptr()) return traits_type::to_int_type(*gptr());
    if (compressed_) {
      inflate_block();
    } else {
      fill();
      setg(raw_.data(), raw_.data(), raw_.data() + held_);
    }
    return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
  }

 private:
  void fill() {
    in_.read(raw_.data(), static_cast<std::streamsize>(raw_.size()));
    held_ = static_cast<std::size_t>(in_.gcount());
  }
  void give() {
    stream_.next_in = reinterpret_cast<Bytef*>(raw_.data());
    stream_.avail_in = static_cast<uInt>(held_);
  }
  void inflate_block() {
    setg(text_.data(), text_.data(), text_.data());
    while (gptr() == egptr()) {
      if (stream_.avail_in == 0) {
        fill();
        give();
      }
      if (stream_.avail_in == 0) {
        if (!complete_) throw error(error_code::malformed, "the compressed program ends too early");
        return;
      }
      if (complete_) {  // another member follows
        inflateReset(&stream_);
        complete_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(text_.data());
      stream_.avail_out = static_cast<uInt>(text_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) throw error(error_code::malformed, "the compressed program is damaged");
      complete_ = status == Z_STREAM_END;
      setg(text_.data(), text_.data(), text_.data() + (text_.size() - stream_.avail_out));
      watch_tokens();
    }
  }
  /// Counts the characters of strings, numbers and words in the block.
  void watch_tokens() {
    for (const char* at = gptr(); at != egptr(); ++at) {
      const char c = *at;
      if (escaped_) escaped_ = false;
      else if (quoted_ && c == '\\') escaped_ = true;
      else if (c == '"') quoted_ = !quoted_, token_ = 0;
      else if (!quoted_ && std::string_view(" \t\r\n,:[]{}").find(c) != std::string_view::npos) token_ = 0;
      if (++token_ > most_token) throw error(error_code::capacity, "the compressed program has a name or a value of more than " + std::to_string(most_token) + " characters");
    }
  }

  std::ifstream in_;
  std::array<char, 1 << 16> raw_{}, text_{};
  std::size_t held_ = 0;
  bool compressed_ = false, complete_ = false;
  bool quoted_ = false, escaped_ = false;  ///< where the text is
  std::size_t token_ = 0;                  ///< characters of what it is in
  z_stream stream_{};
};

}  // namespace raptor::sim::timing
