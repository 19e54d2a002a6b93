#include "engine/input/decode/jpeg.h"

#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs stdio's types and does not include them.
#include <jerror.h>
#include <jpeglib.h>

namespace paceline {

namespace {

constexpr int kMostScans = 500;  // a progressive file of a few bytes a scan could take hours

// Warnings that tell of no lost data.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
}

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace paceline
