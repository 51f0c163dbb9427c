#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "raptor/support/error.hpp"

/// Parsing protobuf messages of unknown origin. Protobuf believes the lengths of a file before it has seen the bytes, and makes an
/// object of hundreds of bytes of an empty part; so the bytes are walked first, without making anything.
namespace raptor::onnx_io {

/// Most bytes that the objects of a message may take beside four times the bytes of the file. Contents of tensors, names and other
/// strings do not count: they are as large as in the file.
inline constexpr std::int64_t object_allowance = std::int64_t{64} << 20;

namespace detail {

/// Walks the bytes of one message by the fields that its type has. Nothing is kept but sums.
class wire_walk {
 public:
  /// `size`: bytes of the input. `what`: the error's text where the bytes are no message of the type.
  wire_walk(google::protobuf::io::ZeroCopyInputStream& input, std::int64_t size, const std::string& what, const std::string& place)
      : bytes_(&input), size_(size), what_(what), place_(place) {}

  /// Bytes that protobuf's objects will take, about. Errors: malformed, with the position; O(parts of the message).
  [[nodiscard]] std::int64_t objects_of(const google::protobuf::Descriptor& type) {
    message(&type, size_, 0);
    return objects_;
  }

 private:
  using field_descriptor = google::protobuf::FieldDescriptor;
  // Nesting that protobuf parses at most.
  static constexpr int most_depth = 100;
  // A string object and its place in a list; a number in a list; an unknown field.
  static constexpr std::int64_t string_cost = 48, number_cost = 8, unknown_cost = 48;

  [[noreturn]] void fail(const std::string& why) const { throw error(error_code::malformed, what_ + ": " + why + " at byte " + std::to_string(position()), place_); }
  [[nodiscard]] std::int64_t position() const { return bytes_.CurrentPosition(); }
  [[nodiscard]] std::uint64_t number() {
    std::uint64_t value = 0;
    if (!bytes_.ReadVarint64(&value)) fail("no number");
    return value;
  }
  void skip(std::int64_t count, std::int64_t end) {
    const auto left = end - position();
    if (count > left) fail("a part of " + std::to_string(count) + " bytes where " + std::to_string(std::max<std::int64_t>(left, 0)) + " are left,");
    if (!bytes_.Skip(static_cast<int>(count))) fail("the end of the file");
  }
  [[nodiscard]] std::int64_t length(std::int64_t end) {
    const auto bytes = number();
    const auto left = end - position();
    if (left < 0 || bytes > static_cast<std::uint64_t>(left))
      fail("a part of " + std::to_string(bytes) + " bytes where " + std::to_string(std::max<std::int64_t>(left, 0)) + " are left,");
    return static_cast<std::int64_t>(bytes);
  }

  /// The fields up to `end`; `type` null: of a message that is not known. `group`: the fields end with this group's mark.
  void message(const google::protobuf::Descriptor* type, std::int64_t end, int depth, std::uint64_t group = 0) {
    if (depth > most_depth) fail("too deep a nesting");
    while (position() < end) {
      const auto tag = number();
      const auto wire = static_cast<int>(tag & 7);
      const auto id = tag >> 3;
      if (id == 0 || tag > std::numeric_limits<std::uint32_t>::max()) fail("no field");
      if (wire == 4) {
        if (id != group) fail("the end of a group that did not begin");
        return;
      }
      const auto* field = type == nullptr ? nullptr : type->FindFieldByNumber(static_cast<int>(id));
      value(field, wire, end, depth, id);
      if (position() > end) fail("a value that is longer than its part");
    }
    if (group != 0) fail("a group without an end");
  }
  void value(const field_descriptor* field, int wire, std::int64_t end, int depth, std::uint64_t id) {
    switch (wire) {
      case 0: static_cast<void>(number()); break;
      case 1: skip(8, end); break;
      case 5: skip(4, end); break;
      case 2: delimited(field, length(end), depth); return;
      case 3: message(nullptr, end, depth + 1, id); break;
      default: fail("no field");
    }
    if (field == nullptr) objects_ += unknown_cost;
    else if (field->is_repeated() && !is_tensor_data(*field)) objects_ += number_cost;
  }
  void delimited(const field_descriptor* field, std::int64_t bytes, int depth) {
    const auto end = position() + bytes;
    if (field != nullptr && field->type() == field_descriptor::TYPE_MESSAGE) {
      objects_ += empty_size(*field->message_type());
      message(field->message_type(), end, depth + 1);
      if (position() != end) fail("a part that does not end where it should,");
      return;
    }
    const bool text = field != nullptr && (field->type() == field_descriptor::TYPE_STRING || field->type() == field_descriptor::TYPE_BYTES);
    if (field == nullptr) objects_ += unknown_cost;
    else if (text) objects_ += string_cost;
    else if (!is_tensor_data(*field)) objects_ += number_cost * bytes;  // numbers without a tag each
    skip(bytes, end);
  }
  /// Whether the field holds the elements of a tensor.
  [[nodiscard]] static bool is_tensor_data(const field_descriptor& field) {
    return field.containing_type() == ::onnx::TensorProto::descriptor() && std::string_view(field.name()).ends_with("_data");
  }
  /// Bytes of a message without fields, and of its place in a list.
  [[nodiscard]] std::int64_t empty_size(const google::protobuf::Descriptor& type) {
    auto& size = sizes_[&type];
    if (size == 0)
      size = static_cast<std::int64_t>(google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->SpaceUsedLong() + sizeof(void*));
    return size;
  }

  google::protobuf::io::CodedInputStream bytes_;
  std::int64_t size_;
  const std::string& what_;
  const std::string& place_;
  std::int64_t objects_ = 0;
  std::map<const google::protobuf::Descriptor*, std::int64_t> sizes_;
};

/// A file that protobuf reads; parts that are skipped are not read.
class file_source : public google::protobuf::io::CopyingInputStream {
 public:
  explicit file_source(std::ifstream& file) : file_(file) {}
  int Read(void* to, int size) override {
    file_.read(static_cast<char*>(to), size);
    return static_cast<int>(file_.gcount());
  }
  int Skip(int count) override {
    // The caller never skips beyond the size that the file had when it was opened.
    file_.seekg(count, std::ios::cur);
    return file_ ? count : 0;
  }

 private:
  std::ifstream& file_;
};

/// Walks, then parses. `open(use)`: calls `use` with a stream of the bytes from the first.
template <class Open>
void parse_checked(google::protobuf::Message& into, std::int64_t size, const Open& open, const std::string& what, const std::string& place) {
  google::protobuf::LogSilencer quiet;
  std::int64_t objects = 0;
  open([&](google::protobuf::io::ZeroCopyInputStream& input) { objects = wire_walk(input, size, what, place).objects_of(*into.GetDescriptor()); });
  if (objects > object_allowance + 4 * size)
    throw error(error_code::capacity, "the file has " + std::to_string(size) + " bytes, but describes objects of " + std::to_string(objects), place,
                "at most " + std::to_string(object_allowance >> 20) + " MB and four times the size of the file are made");
  open([&](google::protobuf::io::ZeroCopyInputStream& input) {
    if (!into.ParseFromZeroCopyStream(&input)) throw error(error_code::malformed, what, place);
  });
}

}  // namespace detail

/// Parses the bytes of a message. `what`: the message of the error where they are none, for example "not an ONNX tensor".
///
/// Errors: malformed, with the position of the fault; capacity, where the objects would take more than `object_allowance` and four
/// times the bytes. Memory: the message. O(bytes).
inline void parse_message(google::protobuf::Message& into, std::string_view bytes, const std::string& what, const std::string& place) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) throw error(error_code::unsupported, "more than 2 GB", place);
  const auto open = [&](const auto& use) {
    google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
    use(input);
  };
  detail::parse_checked(into, static_cast<std::int64_t>(bytes.size()), open, what, place);
}

/// The same from a file, which is opened for reading only. Further errors: io, where it cannot be read; unsupported, where it is
/// larger than protobuf can read (2 GB).
inline void parse_message_file(google::protobuf::Message& into, const std::filesystem::path& file, const std::string& what) {
  const std::string place = file.string();
  std::error_code ec;
  const auto status = std::filesystem::status(file, ec);
  if (ec || !std::filesystem::exists(status)) throw error(error_code::io, "file not found", place);
  if (!std::filesystem::is_regular_file(status)) throw error(error_code::io, "not a file", place);
  const auto size = std::filesystem::file_size(file, ec);
  if (ec) throw error(error_code::io, "cannot read the file", place);
  if (size == 0) throw error(error_code::malformed, "the file is empty", place);
  if (size > static_cast<std::uintmax_t>(std::numeric_limits<std::int32_t>::max()))
    throw error(error_code::unsupported, "the file has " + std::to_string(size) + " bytes; one ONNX file holds at most 2 GB", place, "save the weights as external data");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw error(error_code::io, "cannot open the file", place);
  const auto open = [&](const auto& use) {
    stream.clear();
    stream.seekg(0);
    detail::file_source source(stream);
    google::protobuf::io::CopyingInputStreamAdaptor input(&source);
    use(input);
  };
  detail::parse_checked(into, static_cast<std::int64_t>(size), open, what, place);
}

}  // namespace raptor::onnx_io
