// Package stress holds a program for tests: it looks flows up as the lane does while Go
// writes them, and finds decisions that were mixed.
package stress

//go:generate go tool -modfile=../../../tools.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -go-package stress -output-stem stress -no-global-types -cflags "-O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" Stress stress.c
