//go:build race

package conntrack

const raceDetector = true
