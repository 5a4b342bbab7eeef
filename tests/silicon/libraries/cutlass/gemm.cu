// A GEMM of CUTLASS's collective builder, chosen by macros; the program prints what it would launch: M N K beta alpha.
#include "../capture.h"

#include <cstdlib>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/thread/activation.h"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/gemm/kernel/tile_scheduler.hpp"
#include "cutlass/util/packed_stride.hpp"

using namespace cute;

#ifndef EA  // elements of A and B, of C, of D, of the sums, of alpha and beta
#define EA cutlass::bfloat16_t
#endif
#ifndef EC
#define EC cutlass::bfloat16_t
#endif
#ifndef ED
#define ED EC
#endif
#ifndef ACC
#define ACC float
#endif
#ifndef ECOMP
#define ECOMP float
#endif
#ifndef LA  // layouts of A and B
#define LA cutlass::layout::RowMajor
#endif
#ifndef LB
#define LB cutlass::layout::ColumnMajor
#endif
#ifndef TM  // tile and cluster
#define TM 128
#endif
#ifndef TN
#define TN 128
#endif
#ifndef TK
#define TK 64
#endif
#ifndef CM
#define CM 1
#endif
#ifndef CN
#define CN 1
#endif
#ifndef KS  // schedules of mainloop, epilogue and tiles
#define KS cutlass::gemm::KernelTmaWarpSpecializedCooperative
#endif
#ifndef ES
#define ES cutlass::epilogue::TmaWarpSpecializedCooperative
#endif
#ifndef SCHED
#define SCHED void
#endif
#ifdef FUSE_RELU
#define FUSION cutlass::epilogue::fusion::LinCombPerRowBiasEltAct<cutlass::epilogue::thread::ReLu, ED, float>
#else
#define FUSION cutlass::epilogue::fusion::LinearCombination<ED, ECOMP, EC, ECOMP>
#endif

constexpr int kAlign = 128 / cutlass::sizeof_bits<EA>::value;
constexpr int kAlignD = 128 / cutlass::sizeof_bits<ED>::value;
using TileMNK = Shape<Int<TM>, Int<TN>, Int<TK>>;
using ClusterMNK = Shape<Int<CM>, Int<CN>, _1>;
using RowMajor = cutlass::layout::RowMajor;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileMNK, ClusterMNK, cutlass::epilogue::collective::EpilogueTileAuto,
    ACC, ECOMP, EC, RowMajor, kAlignD, ED, RowMajor, kAlignD, ES, FUSION>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, EA, LA, kAlign, EA, LB, kAlign, ACC, TileMNK, ClusterMNK,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    KS>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, SCHED>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

int main(int argc, char** argv) {
  int m = atoi(argv[1]), n = atoi(argv[2]), k = atoi(argv[3]);
  auto a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1});
  auto b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1});
  auto d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1});
  typename Gemm::Arguments args{
      cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1}, {(EA*)place_of(0), a, (EA*)place_of(1), b},
      {{}, (typename Epilogue::ElementC*)place_of(2), {}, (ED*)place_of(3), d}, cutlass::KernelHardwareInfo{0, 132}};
  if constexpr (!cute::is_void_v<EC>) args.epilogue.dC = d;
  args.epilogue.thread.beta = ECOMP(argc > 4 ? atof(argv[4]) : 0);
  args.epilogue.thread.alpha = ECOMP(argc > 5 ? atof(argv[5]) : 1);
#ifdef BIAS
  args.epilogue.thread.bias_ptr = (decltype(args.epilogue.thread.bias_ptr))place_of(5);
#endif
  if (!Kernel::can_implement(args)) return 1;
  auto params = Kernel::to_underlying_arguments(args, place_of(4));
  // g++ 12 leaves this part of the structure as it found it.
#ifdef NOSMEM
  auto epilogue = Epilogue::to_underlying_arguments(args.problem_shape, args.epilogue, nullptr);
  memcpy((void*)&params.epilogue, &epilogue, sizeof(epilogue));
#else
  auto thread = Epilogue::FusionCallbacks::to_underlying_arguments(args.problem_shape, args.epilogue.thread, nullptr);
  memcpy((void*)&params.epilogue.thread, &thread, sizeof(thread));
#endif
  tell(Kernel::get_grid_shape(params), Kernel::get_block_shape(), dim3(CM, CN, 1), Kernel::SharedStorageSize,
       Kernel::get_workspace_size(args), params);
  if (argc < 0) cutlass::device_kernel<Kernel><<<1, 1>>>(params);
}
