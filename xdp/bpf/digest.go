package bpf

import (
	"crypto/sha256"
	"encoding/hex"
)

// LaceDigest names the programs of the embedded object: the same text on two builds means
// that their programs are the same, instruction by instruction. Hexadecimal, 16 digits of
// the SHA-256 of the object file; some 200 µs.
func LaceDigest() string {
	sum := sha256.Sum256(_LaceBytes)
	return hex.EncodeToString(sum[:8])
}
