# How Homebrew builds ggml-lite. scripts/release.sh --url ADDRESS fills in what stands between @.
class GgmlLite < Formula
  desc "Chat with, serve, train and measure language models on your own computer"
  homepage "@FOLDER@"
  url "@FOLDER@/@ARCHIVE@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "jpeg-turbo"
  depends_on "libpng"
  depends_on "libsndfile"
  depends_on "webp"

  uses_from_macos "curl"

  on_linux do
    depends_on "libmicrohttpd"
  end

  def install
    system "cmake", "-S", ".", "-B", "build", "-DGGL_TESTS=OFF", "-DGGL_MPI=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match "llm-cli", shell_output("#{bin}/llm-cli --version")
    assert_match "Once upon a time", shell_output("#{bin}/llm-cli -q -p 'Once upon a time' -n 4 -s 1")
  end
end
