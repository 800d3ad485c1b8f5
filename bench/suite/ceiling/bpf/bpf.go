// Package bpf holds the program of the ceiling, address translation of UDP in XDP, and its
// compiled object.
//
// It is a yardstick and not part of the product: it checks nothing and forgets nothing. It
// never touches anything but UDP over IPv4.
package bpf

//go:generate go tool -modfile=../../../../tools.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -go-package bpf -output-stem nat -no-global-types -cflags "-O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" Nat nat.c
