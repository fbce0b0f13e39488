// As much of OpenCV's interface as the example needs, with its overloads and conversions.
#pragma once

namespace cv {
class Mat {
public:
  Mat();
  Mat(int rows, int columns, int type);
  Mat(const Mat &other);
  ~Mat();
};
namespace cuda {
class Stream {
public:
  static Stream &Null();
};
class GpuMat;
} // namespace cuda
class _InputArray {
public:
  _InputArray(const Mat &mat);
  _InputArray(const cuda::GpuMat &mat);
};
class _OutputArray : public _InputArray {
public:
  _OutputArray(Mat &mat);
  _OutputArray(cuda::GpuMat &mat);
};
typedef const _InputArray &InputArray;
typedef const _OutputArray &OutputArray;
InputArray noArray();
Mat imread(const char *name, int flags = 1);
void add(InputArray a, InputArray b, OutputArray sum, InputArray mask = noArray());
namespace cuda {
class GpuMat {
public:
  GpuMat();
  explicit GpuMat(InputArray host);
  GpuMat(int rows, int columns, int type);
  GpuMat(const GpuMat &other);
  ~GpuMat();
  void upload(InputArray host);
  void download(OutputArray host) const;
  GpuMat clone() const;
};
void setDevice(int device);
void add(InputArray a, InputArray b, OutputArray sum, InputArray mask = noArray(), int type = -1,
         Stream &stream = Stream::Null());
} // namespace cuda
} // namespace cv
