/* SPDX-License-Identifier: MIT */
/*
 * The built-in cards. Memory is what programs on such cards reported as the device's total
 * (torch.cuda.get_device_properties in MiB, deviceQuery in bytes, "total capacity" of out-of-memory
 * messages in GiB with two digits), on Linux where there is a choice; drivers differ by some ten
 * MiB. A card without a report has its nominal size less what cards of the kind keep: unknown.
 */
#include "standin/gpu_table.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define REPORT ALLOT_GPU_SOURCE_REPORT
#define UNKNOWN ALLOT_GPU_SOURCE_UNKNOWN

const char ALLOTI_GPU_GUIDE[] =
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities";

/*
 * What a context takes is what remains of a process's memory when PyTorch's own is subtracted, as
 * out-of-memory messages tell it ("this process has ... in use", "allocated by PyTorch", "reserved
 * by PyTorch but unallocated"): the driver's part and the kernels loaded so far, to some ten MiB.
 * Programs with many kinds of kernels take more. For CUDA 13 there are too few reports: the value
 * of CUDA 12 stands in.
 */
#define ASSUMED(mib)                                                                               \
    {                                                                                              \
        (mib), UNKNOWN, "assumption: no report of such a card was found"                           \
    }
#define REPORTED(mib, address)                                                                     \
    {                                                                                              \
        (mib), REPORT, address                                                                     \
    }
#define AS_12(mib, more)                                                                           \
    {                                                                                              \
        (mib), UNKNOWN, "assumption: as with CUDA 12" more                                         \
    }

/* major, minor, threads, blocks, shared KiB, opt-in KiB, reserved bytes, context with CUDA 12 and
 * 13, paper */
const gpu_architecture ALLOTI_GPU_ARCHITECTURES[] = {
    {7, 0, 2048, 32, 96, 96, 0, ASSUMED(300), AS_12(300, ""),
     "https://images.nvidia.com/content/volta-architecture/pdf/volta-architecture-whitepaper.pdf"},
    {7, 5, 1024, 16, 64, 64, 0,
     REPORTED(136, "https://github.com/FoundationVision/GenerateU/issues/10"), AS_12(136, ""),
     "https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/"
     "turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf"},
    {8, 0, 2048, 32, 164, 163, 1024,
     REPORTED(410, "https://github.com/HiDream-ai/VAREdit/issues/6"), AS_12(410, ""),
     "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/"
     "nvidia-ampere-architecture-whitepaper.pdf"},
    {8, 6, 1536, 16, 100, 99, 1024,
     REPORTED(282, "https://github.com/meta-pytorch/torchtune/pull/229"), AS_12(282, ""),
     "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf"},
    {8, 9, 1536, 24, 100, 99, 1024,
     REPORTED(472, "https://github.com/pinokiofactory/flux-webui/issues/11"),
     AS_12(472, "; without kernels 426 MiB, https://github.com/unslothai/unsloth-zoo/pull/1053"),
     "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"},
    {9, 0, 2048, 32, 228, 227, 1024, ASSUMED(520), AS_12(520, ""),
     "https://resources.nvidia.com/en-us-hopper-architecture/nvidia-h100-tensor-c"},
    {10, 0, 2048, 32, 228, 227, 1024, ASSUMED(560), AS_12(560, ""),
     "https://resources.nvidia.com/en-us-blackwell-architecture"},
    {12, 0, 1536, 24, 100, 99, 1024,
     REPORTED(596, "https://github.com/Wan-Video/Wan2.1/issues/465"), AS_12(596, ""),
     "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/"
     "nvidia-rtx-blackwell-gpu-architecture.pdf"},
};
const size_t ALLOTI_GPU_ARCHITECTURE_COUNT =
    sizeof ALLOTI_GPU_ARCHITECTURES / sizeof ALLOTI_GPU_ARCHITECTURES[0];

/* id, name, capability, memory, its source and reference, multiprocessors, L2 KiB, persisting KiB,
 * clock MHz, memory clock MHz, bus bits, copy engines; by rising memory */
const gpu_card ALLOTI_GPU_CARDS[] = {
    {"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 7, 5, MIB(11019), REPORT, "", 68, 5632, 0, 1545,
     7000, 352, 3},
    {"rtx4070", "NVIDIA GeForce RTX 4070", 8, 9, MIB(11874), UNKNOWN, "", 46, 36864, 25344, 2475,
     10501, 192, 2},
    {"rtx3060", "NVIDIA GeForce RTX 3060", 8, 6, MIB(11938), REPORT, "", 28, 3072, 2304, 1777, 7501,
     192, 2},
    {"t4", "Tesla T4", 7, 5, MIB(15102), REPORT,
     "https://github.com/FoundationVision/GenerateU/issues/10", 40, 4096, 0, 1590, 5001, 256, 3},
    {"rtx5080", "NVIDIA GeForce RTX 5080", 12, 0, MIB(15842), UNKNOWN, "", 84, 65536, 40960, 2617,
     15001, 256, 2},
    {"rtx4080", "NVIDIA GeForce RTX 4080", 8, 9, MIB(16049), REPORT, "", 76, 65536, 45056, 2505,
     11201, 256, 2},
    {"rtx4060ti-16", "NVIDIA GeForce RTX 4060 Ti", 8, 9, MIB(16074), UNKNOWN, "", 34, 32768, 22528,
     2535, 9001, 128, 2},
    {"v100-16", "Tesla V100-SXM2-16GB", 7, 0, MIB(16160), REPORT, "", 80, 6144, 0, 1530, 877, 4096,
     5},
    {"l4", "NVIDIA L4", 8, 9, MIB(22563), UNKNOWN, "", 58, 49152, 33792, 2040, 6251, 192, 2},
    {"a10g", "NVIDIA A10G", 8, 6, MIB(22587), REPORT, "", 80, 6144, 4608, 1710, 6251, 384, 2},
    {"a10", "NVIDIA A10", 8, 6, MIB(22587), UNKNOWN, "", 72, 6144, 4608, 1695, 6251, 384, 2},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, MIB(24207), REPORT,
     "https://github.com/3DTopia/Phidias-Diffusion/issues/8", 128, 73728, 51904, 2520, 10501, 384,
     2},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 8, 6, MIB(24259), REPORT, "", 82, 6144, 4608, 1695, 9751,
     384, 2},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, UINT64_C(33677180928), REPORT,
     "https://github.com/aikitoria/open-gpu-kernel-modules/issues/1", 170, 98304, 61440, 2655,
     14001, 512, 2},
    {"v100-32", "Tesla V100-SXM2-32GB", 7, 0, MIB(32510), UNKNOWN, "", 80, 6144, 0, 1530, 877, 4096,
     5},
    {"a100-40", "NVIDIA A100-SXM4-40GB", 8, 0, MIB(40536), REPORT, "", 108, 40960, 30720, 1410,
     1215, 5120, 3},
    {"a40", "NVIDIA A40", 8, 6, MIB(45416), REPORT, "", 84, 6144, 4608, 1740, 7251, 384, 2},
    {"l40s", "NVIDIA L40S", 8, 9, MIB(45589), REPORT, "", 142, 98304, 67584, 2520, 9001, 384, 2},
    {"rtx6000ada", "NVIDIA RTX 6000 Ada Generation", 8, 9, UINT64_C(50865307648), REPORT,
     "https://github.com/unslothai/unsloth-zoo/pull/1053", 142, 98304, 67584, 2505, 10001, 384, 2},
    {"h100-pcie", "NVIDIA H100 PCIe", 9, 0, MIB(81008), REPORT, "", 114, 51200, 32000, 1755, 1593,
     5120, 3},
    {"a100-80", "NVIDIA A100-SXM4-80GB", 8, 0, MIB(81050), REPORT,
     "https://github.com/meta-pytorch/torchrec/pull/3580", 108, 40960, 30720, 1410, 1593, 5120, 3},
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, MIB(81089), REPORT, "", 132, 51200, 32000, 1980, 2619,
     5120, 3},
    {"h100-nvl", "NVIDIA H100 NVL", 9, 0, MIB(95346), UNKNOWN, "", 132, 61440, 38400, 1785, 2619,
     6016, 3},
    {"gh200", "NVIDIA GH200 480GB", 9, 0, MIB(96768), UNKNOWN, "", 132, 61440, 38400, 1980, 2619,
     6144, 3},
    {"rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 12, 0, MIB(97250), REPORT, "",
     188, 131072, 81920, 2430, 14001, 512, 2},
    {"h200", "NVIDIA H200", 9, 0, MIB(143156), REPORT, "", 132, 61440, 38400, 1980, 3201, 6144, 3},
    {"b200", "NVIDIA B200", 10, 0, MIB(182631), REPORT, "", 148, 129024, 80640, 1965, 3996, 8192,
     3},
};
const size_t ALLOTI_GPU_CARD_COUNT = sizeof ALLOTI_GPU_CARDS / sizeof ALLOTI_GPU_CARDS[0];
