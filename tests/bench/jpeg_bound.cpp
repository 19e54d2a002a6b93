#include "tests/bench/jpeg_bound.h"

#include <cstdlib>
// After stdio.
#include <jpeglib.h>

namespace paceline::bench {

std::string encoded_jpeg(const std::vector<std::uint8_t>& rgb, int height, int width) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < height; ++y) {
    auto row = const_cast<JSAMPROW>(rgb.data() + std::ptrdiff_t{3} * y * width);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return jpeg;
}

struct JpegBound::State {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  std::vector<std::uint8_t> pixels;
};

JpegBound::JpegBound(std::string jpeg) : jpeg_(std::move(jpeg)), state_(std::make_unique<State>()) {
  state_->info.err = jpeg_std_error(&state_->errors);
  jpeg_create_decompress(&state_->info);
}

JpegBound::~JpegBound() {
  jpeg_destroy_decompress(&state_->info);
}

double JpegBound::run() {
  jpeg_decompress_struct& info = state_->info;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg_.data()), jpeg_.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const std::size_t row_bytes = std::size_t{3} * info.output_width;
  state_->pixels.resize(info.output_height * row_bytes);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = state_->pixels.data() + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return 1;
}

}  // namespace paceline::bench
