//go:build !race

package conntrack

const raceDetector = false
