package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// onKey calls pressed when a key is pressed on a terminal, without a newline after it and
// without showing it; Ctrl-C goes on to work. The returned function puts the terminal back.
func onKey(terminal *os.File, key byte, pressed func()) (restore func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("the keyboard cannot be read (%w): use --once", err)
	}
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO
	single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &single); err != nil {
		return nil, fmt.Errorf("the keyboard cannot be set (%w): use --once", err)
	}
	go func() {
		var b [1]byte
		for {
			if n, err := terminal.Read(b[:]); n == 0 || err != nil || b[0] == key {
				pressed()
				return
			}
		}
	}()
	return func() { unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}

// ownsKeyboard reports whether keys pressed on a terminal come to this process: a shell's job in
// the background is stopped when it asks for them, or changes how they are read (termios(3)).
func ownsKeyboard(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
