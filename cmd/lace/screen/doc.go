// Package screen is how the lace command shows things: tables for people, JSON and YAML
// for programs, colour where a terminal wants it.
//
// It owns layout only: it never asks an agent, decides an exit code or rounds a figure
// that a program reads. JSON and YAML carry the fields of the agent's answer unchanged;
// tables may leave columns out, which "wide" brings back.
//
// Cost: a table is held in memory until its widths are known.
package screen
