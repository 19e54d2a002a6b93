#include "engine/input/decode/image.h"

#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "engine/core/error.h"
#include "engine/input/formats/source.h"

// jpeglib.h needs stdio's types and does not include them.
#include <jerror.h>
#include <jpeglib.h>

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

constexpr int kMostScans = 500;  // a progressive file of a few bytes a scan could take hours

// Warnings that tell of no lost data.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
}

// Adobe writes inks inverted: 255 is none (as TensorFlow and Pillow read them).
void to_rgb(const std::uint8_t* inks, int width, bool inverted, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, inks += 4, rgb += 3) {
    const int black = inverted ? inks[3] : 255 - inks[3];
    for (int c = 0; c < 3; ++c) {
      const int ink = inverted ? inks[c] : 255 - inks[c];
      rgb[c] = static_cast<std::uint8_t>(ink * black / 255);
    }
  }
}

// libpng is left by longjmp, as libjpeg: see below.
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
  throw input_error("the image " + fault, where(),
                    "replace or remove it, or train with --on-bad-sample skip");
}

// libjpeg reports through callbacks that must not return: it is left by longjmp, so between setjmp
// and the end of a decoding no object with a destructor may be made.
struct ImageDecoder::Jpeg::State {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf leave{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  int code = 0;
  bool ready = false;
  std::vector<std::uint8_t> inks;  // a row of CMYK

  static State& of(j_common_ptr info) { return *static_cast<State*>(info->client_data); }

  [[noreturn]] static void fail(j_common_ptr info) {
    State& state = of(info);
    state.code = info->err->msg_code;
    (*info->err->format_message)(info, state.message.data());
    std::longjmp(state.leave, 1);
  }
  static void on_message(j_common_ptr info, int level) {
    if (level < 0 && !is_harmless(info->err->msg_code)) fail(info);
  }
  static void on_output(j_common_ptr) {}
  static void on_progress(j_common_ptr info) {
    State& state = of(info);
    if (state.info.input_scan_number <= kMostScans) return;
    std::snprintf(state.message.data(), state.message.size(), "more than %d scans", kMostScans);
    std::longjmp(state.leave, 1);
  }

  bool run(std::string_view bytes, int channels, Image& image);
  void read_rows(Image& image);
};

void ImageDecoder::Jpeg::State::read_rows(Image& image) {
  const bool has_inks = info.out_color_space == JCS_CMYK;
  while (info.output_scanline < info.output_height) {
    std::uint8_t* row = image.pixels.data() + info.output_scanline * image.row_bytes();
    JSAMPROW target = has_inks ? inks.data() : row;
    if (jpeg_read_scanlines(&info, &target, 1) != 1) break;
    if (has_inks) to_rgb(inks.data(), image.width, info.saw_Adobe_marker, row);
  }
}

// False: `message` says why.
bool ImageDecoder::Jpeg::State::run(std::string_view bytes, int channels, Image& image) {
  message[0] = '\0';
  code = 0;
  if (setjmp(leave) != 0) {
    jpeg_abort_decompress(&info);
    return false;
  }
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (static_cast<std::size_t>(info.image_width) * info.image_height > kMostPixels) {
    std::snprintf(message.data(), message.size(), "%u x %u pixels are more than %zu",
                  info.image_width, info.image_height, kMostPixels);
    std::longjmp(leave, 1);
  }
  const bool has_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  if (has_inks && channels != 3) {
    std::snprintf(message.data(), message.size(), "CMYK where gray is wanted");
    std::longjmp(leave, 1);
  }
  info.out_color_space = has_inks ? JCS_CMYK : channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  info.dct_method = JDCT_ISLOW;
  image.resize(static_cast<int>(info.image_height), static_cast<int>(info.image_width), channels);
  if (has_inks) inks.resize(std::size_t{4} * info.image_width);
  jpeg_start_decompress(&info);
  read_rows(image);
  jpeg_finish_decompress(&info);
  return true;
}

ImageDecoder::Jpeg::Jpeg() : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.info.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = State::fail;
  s.errors.emit_message = State::on_message;
  s.errors.output_message = State::on_output;
  s.info.client_data = &s;
  if (setjmp(s.leave) != 0) throw std::bad_alloc();
  jpeg_create_decompress(&s.info);
  s.info.client_data = &s;
  s.progress.progress_monitor = State::on_progress;
  s.info.progress = &s.progress;
}

ImageDecoder::Jpeg::~Jpeg() {
  jpeg_destroy_decompress(&state_->info);
}

void ImageDecoder::Jpeg::decode(std::string_view bytes, int channels, Image& image,
                                std::string& fault) {
  fault.clear();
  if (state_->run(bytes, channels, image)) return;
  switch (state_->code) {
    case JERR_BAD_PRECISION:
      fault = fmt::format("is a JPEG of {} bits a colour: only 8 can be decoded",
                          state_->info.data_precision);
      return;
    case JERR_ARITH_NOTIMPL:
      fault = "is an arithmetic-coded JPEG, which the JPEG library here was built without";
      return;
    case JWRN_HIT_MARKER:
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF:
      fault = fmt::format("is cut short (JPEG: {})", state_->message.data());
      return;
    default:
      fault = fmt::format("cannot be decoded (JPEG: {})", state_->message.data());
  }
}

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
