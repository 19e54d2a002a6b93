#include "tests/unit/input/made.h"

#include <fmt/format.h>
#include <png.h>

#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <fstream>
// After stdio.
#include <jpeglib.h>

#include "engine/core/file.h"
#include "engine/input/formats/example.pb.h"
#include "engine/input/formats/tfrecord.h"

namespace paceline {

std::vector<std::uint8_t> make_pixels(int height, int width, int channels, int number) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const double wave = std::sin(0.07 * x * (c + 1) + 0.05 * y + number);
        pixels.push_back(static_cast<std::uint8_t>(127.5 + 120 * wave));
      }
    }
  }
  return pixels;
}

std::string make_jpeg(int height, int width, int number, JpegKind kind) {
  std::vector<std::uint8_t> pixels = make_pixels(height, width, kind.components, number);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = kind.components;
  info.in_color_space = kind.components == 1   ? JCS_GRAYSCALE
                        : kind.components == 3 ? JCS_RGB
                                               : JCS_CMYK;
  jpeg_set_defaults(&info);
  if (kind.components == 4) {
    jpeg_set_colorspace(&info, JCS_YCCK);
    info.write_Adobe_marker = TRUE;
  }
  jpeg_set_quality(&info, kind.quality, TRUE);
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = pixels.data() + static_cast<std::ptrdiff_t>(y) * width * kind.components;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return jpeg;
}

std::string make_png(int height, int width, int channels, int number, int bits) {
  const std::vector<std::uint8_t> pixels = make_pixels(height, width, channels, number);
  const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                         PNG_COLOR_TYPE_RGB_ALPHA};
  std::string png_bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &png_bytes,
      [](png_structp p, png_bytep data, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(p))
            ->append(reinterpret_cast<const char*>(data), count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), bits,
               colours[channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const auto row_values = static_cast<std::size_t>(width * channels);
  std::vector<std::uint8_t> row;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    row.clear();
    for (std::size_t i = 0; i < row_values; ++i) {
      row.push_back(pixels[y * row_values + i]);
      if (bits == 16) row.push_back(7);  // the low byte, which is dropped
    }
    png_write_row(png, row.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return png_bytes;
}

std::string make_example(const std::string& image, std::int64_t label, const std::string& image_key,
                         const std::string& label_key) {
  wire::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features[image_key].mutable_bytes_list()->add_value(image);
  features["image/filename"].mutable_bytes_list()->add_value("a.jpg");
  features[label_key].mutable_int64_list()->add_value(label);
  return example.SerializeAsString();
}

std::string make_record(const std::string& data) {
  const auto make_bytes = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto compute_crc = [&](const std::string& bytes) {
    return make_bytes(masked_crc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  };
  const std::string length = make_bytes(std::uint64_t{data.size()});
  return length + compute_crc(length) + data + compute_crc(data);
}

void write_file(const std::filesystem::path& file, const std::string& content) {
  make_folder(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

void write_tfds(const std::filesystem::path& folder,
                const std::vector<std::vector<std::string>>& shards) {
  std::string lengths;
  const auto load_records = [](const std::vector<std::string>& examples) {
    std::string records;
    for (const std::string& example : examples) records += make_record(example);
    return records;
  };
  for (std::size_t s = 0; s < shards.size(); ++s) {
    lengths += fmt::format("{}\"{}\"", s ? ", " : "", shards[s].size());
    write_file(folder / fmt::format("pets-train.tfrecord-{:05}-of-{:05}", s, shards.size()),
               load_records(shards[s]));
  }
  write_file(folder / "pets-test.tfrecord-00000-of-00001", load_records(shards.back()));
  write_file(folder / "label.labels.txt", "cat\ndog\nowl\n");
  write_file(folder / "dataset_info.json",
             fmt::format(R"({{"name": "pets", "fileFormat": "tfrecord", "version": "1.0.0",
  "supervisedKeys": {{"tuple": {{"items": [{{"featureKey": "image"}}, {{"featureKey": "label"}}]}}}},
  "splits": [{{"name": "train", "shardLengths": [{}],
    "filepathTemplate": "{{DATASET}}-{{SPLIT}}.{{FILEFORMAT}}-{{SHARD_X_OF_Y}}"}},
   {{"name": "test", "shardLengths": ["{}"]}}]}})",
                         lengths, shards.back().size()));
}

}  // namespace paceline
