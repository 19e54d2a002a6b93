"""What was built: packaging/README.md. spack repo add packaging/spack && spack install paceline+cuda cuda_arch=90"""
import os

from spack.package import *

try:  # since 1.0 in repositories of their own
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:
    pass


class Paceline(CMakePackage, CudaPackage):
    """Measures data-parallel scaling of training programs: speed-ups with intervals, where the rest went, and
    whether it got worse."""

    license("Apache-2.0")
    # This repository itself; a release needs the tag that a person pushes.
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))

    version("main", branch="main", preferred=True)  # until the tag v0.2.0 is there
    version("0.2.0", tag="v0.2.0")

    variant("engine", default=True, description="Paceline's own training, beside studies of other programs")
    variant("mpi", default=True, when="+engine", description="backend mpi")
    variant("onednn", default=True, when="+engine", description="device cpu")
    variant("gloo", default=False, when="+engine", description="backend gloo")
    variant("fetch", default=True, description="downloads of data sets and weights")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("git", type=("build", "run"))
    depends_on("boost+math", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("fmt@9:")
    depends_on("spdlog")
    depends_on("xxhash")
    depends_on("hwloc")
    depends_on("zlib-api")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("libarchive")
    depends_on("openssl")
    depends_on("pcre2")
    # Newer ones need abseil beside them.
    depends_on("protobuf@3.12:3.21")
    depends_on("gnuplot", type="run")
    depends_on("curl", when="+fetch")
    depends_on("hdf5~mpi", when="+engine")
    depends_on("mpi", when="+mpi")
    depends_on("onednn@2.6:3 cpu_runtime=omp", when="+onednn")
    depends_on("gloo", when="+gloo")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@9.1:", when="+cuda")
    depends_on("nccl@2.19:", when="+cuda")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    conflicts("cuda_arch=none", when="+cuda", msg="NCCL needs it: cuda_arch=90 for H100 and H200")
    conflicts("~engine", when="+cuda", msg="GPUs are of the engine")
    conflicts("%gcc@:11", msg="C++20 as GCC 12 has it")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("PACELINE_TESTS", False),
            self.define("PACELINE_PCH", True),
            self.define_from_variant("PACELINE_ENGINE", "engine"),
            self.define_from_variant("PACELINE_CUDA", "cuda"),
            self.define("PACELINE_MPI", self.spec.satisfies("+mpi")),
            self.define("PACELINE_ONEDNN", self.spec.satisfies("+onednn")),
            # Not found by chance in the system's folders.
            self.define("CMAKE_DISABLE_FIND_PACKAGE_Gloo", not self.spec.satisfies("+gloo")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_CURL", self.spec.satisfies("~fetch")),
        ]
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        program = Executable(self.prefix.bin.paceline)
        program("--version")
        program("sweep", "quick", "--dry-run")
