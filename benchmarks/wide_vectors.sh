# Faster matrix products on processors that MKL does not know for its own. To be sourced, on Linux with a C compiler:
#
#     source benchmarks/wide_vectors.sh     # for this shell and what is started from it
#
# Torch multiplies matrices on the CPU with MKL, which asks who made the processor and on others' chooses kernels for narrow
# vectors, although many have the wide ones (AVX-512) too. A library loaded first answers that question with yes. Kernels
# differ in the order of their sums, so in the last digits; results of either are single precision. The other settings let a
# process keep the memory it has had, in large pages: logits of thousands of words are otherwise given back and fetched
# again at every step.

answer=$(mktemp --suffix .so)
printf 'int mkl_serv_intel_cpu_true(void){return 1;}\nint mkl_serv_intel_cpu(void){return 1;}\n' |
  ${CC:-cc} -shared -fPIC -x c -o "$answer" - &&
  export LD_PRELOAD="$answer${LD_PRELOAD:+:$LD_PRELOAD}"
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456
