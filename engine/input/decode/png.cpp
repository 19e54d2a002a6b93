#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "engine/input/decode/image.h"

namespace paceline {

namespace {

// libpng is left by longjmp: see jpeg.cpp.
struct Reader {
  std::string_view bytes;
  std::size_t at = 0;
  char message[128] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;

  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }

  static void on_read(png_structp png, png_bytep out, std::size_t count) {
    auto& reader = *static_cast<Reader*>(png_get_io_ptr(png));
    if (count > reader.bytes.size() - reader.at) png_error(png, "end of file");
    std::memcpy(out, reader.bytes.data() + reader.at, count);
    reader.at += count;
  }
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto& reader = *static_cast<Reader*>(png_get_error_ptr(png));
    std::snprintf(reader.message, sizeof reader.message, "%s", text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}

  bool run(int channels, Image& image);
  void transform(int channels);
};

void Reader::transform(int channels) {
  const int colour = png_get_color_type(png, info);
  if (png_get_bit_depth(png, info) == 16) png_set_strip_16(png);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  if (png_get_valid(png, info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(png);
  png_set_strip_alpha(png);
  const bool is_gray = !(colour & PNG_COLOR_MASK_COLOR);
  if (channels == 3 && is_gray) png_set_gray_to_rgb(png);
  if (channels == 1 && !is_gray) png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, -1, -1);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

bool Reader::run(int channels, Image& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, this, on_read);
  png_set_user_limits(png, 1 << 16, 1 << 16);
  png_set_chunk_malloc_max(png, std::size_t{16} << 20);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_QUIET_USE);
  png_read_info(png, info);
  const std::size_t height = png_get_image_height(png, info);
  const std::size_t width = png_get_image_width(png, info);
  if (height * width > ImageDecoder::kMostPixels) png_error(png, "too many pixels");
  transform(channels);
  const int passes = png_get_interlace_type(png, info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  image.resize(static_cast<int>(height), static_cast<int>(width), channels);
  if (png_get_rowbytes(png, info) != image.row_bytes()) png_error(png, "an unknown colour type");
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t y = 0; y < height; ++y) {
      png_read_row(png, image.pixels.data() + y * image.row_bytes(), nullptr);
    }
  }
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

void decode_png(std::string_view bytes, int channels, Image& image, std::string& fault) {
  Reader reader;
  reader.bytes = bytes;
  reader.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, Reader::on_error, Reader::on_warning);
  if (reader.png) reader.info = png_create_info_struct(reader.png);
  if (!reader.info) throw std::bad_alloc();
  if (reader.run(channels, image)) return;
  fault = std::strcmp(reader.message, "end of file") == 0
              ? "is cut short (PNG)"
              : fmt::format("cannot be decoded (PNG: {})", reader.message);
}

}  // namespace paceline
