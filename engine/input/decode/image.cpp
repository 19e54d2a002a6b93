#include "engine/input/decode/image.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/input/decode/jpeg.h"
#include "engine/input/formats/random_file.h"

namespace paceline {

void Image::resize(int new_height, int new_width, int new_channels) {
  height = new_height;
  width = new_width;
  channels = new_channels;
  pixels.resize(static_cast<std::size_t>(height) * row_bytes() + kSlack);
}

namespace {

std::string unknown_kind(std::string_view bytes) {
  if (std::string guess = guess_content(bytes); !guess.empty()) return guess;
  std::string head;
  for (const char c : bytes.substr(0, 8)) {
    head += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  }
  return fmt::format("is neither JPEG nor PNG: it begins with{}", head);
}

}  // namespace

ImageDecoder::ImageDecoder() : jpeg_(std::make_unique<Jpeg>()) {}
ImageDecoder::~ImageDecoder() = default;

void ImageDecoder::decode(std::string_view bytes, int channels, Image& image,
                          const std::function<std::string()>& where) {
  std::string fault;
  if (bytes.starts_with("\xff\xd8")) {
    jpeg_->decode(bytes, channels, image, fault);
  } else if (bytes.starts_with("\x89PNG\r\n\x1a\n")) {
    decode_png(bytes, channels, image, fault);
  } else {
    fault = unknown_kind(bytes);
  }
  if (fault.empty()) return;
  throw Error(ErrorKind::input, "the image " + fault, where(),
              "replace or remove it, or train with --on-bad-sample skip");
}

}  // namespace paceline
