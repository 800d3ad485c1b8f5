// Package bpf holds the programs at the two ends of a load of UDP frames, and their
// compiled object: "make" writes frames for BPF_PROG_TEST_RUN with live frames, "take"
// counts them where they arrive and drops or answers them, "swallow" is for the
// measurement of the generator itself.
//
// It owns nothing at run time. The programs never touch a packet that is not of the load.
package bpf

//go:generate go tool -modfile=../../../tools.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -go-package bpf -output-stem load -no-global-types -cflags "-O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" Load load.c
