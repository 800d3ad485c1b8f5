package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lace-cni.io/lace/cmd/lace/acts"
	"lace-cni.io/lace/cmd/lace/screen"
)

// A command owns the keyboard in the foreground of its terminal only: neither in the background,
// nor where its input is no terminal.
func TestOwnsKeyboard(t *testing.T) {
	if how := os.Getenv("LACE_TEST_KEYBOARD"); how != "" {
		keyboardChild(how)
	}
	for how, want := range map[string]string{"foreground": "true", "background": "false"} {
		terminal := pseudoTerminal(t)
		cmd := keyboardCommand(how, terminal)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		out, err := cmd.Output()
		if err != nil || string(out) != want {
			t.Errorf("in the %s: %q, %v; want %s", how, out, err, want)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if ownsKeyboard(r) {
		t.Error("a pipe is a keyboard")
	}
}

func keyboardCommand(how string, terminal *os.File) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestOwnsKeyboard$")
	cmd.Env = append(os.Environ(), "LACE_TEST_KEYBOARD="+how)
	cmd.Stdin = terminal
	return cmd
}

// keyboardChild says on its output what it is told to find out, and ends.
func keyboardChild(how string) {
	if how == "background" {
		cmd := keyboardCommand("foreground", os.Stdin)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, _ := cmd.Output()
		fmt.Print(string(out))
	} else {
		fmt.Print(ownsKeyboard(os.Stdin))
	}
	os.Exit(0)
}

// pseudoTerminal opens one; a command gets its far side.
func pseudoTerminal(t *testing.T) *os.File {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	t.Cleanup(func() { near.Close() })
	if err := unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	far, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return far
}

// What follows the acts where nobody can press a key: the demo says why there is no live table
// and ends, or stays until it is stopped.
func TestDemoWithoutKeyboard(t *testing.T) {
	for _, c := range []struct {
		sentence string
		demo     demo
		terminal *os.File
		says     string
	}{
		{"output to a file ends without a word", demo{}, nil, ""},
		{"a terminal, but a keyboard that is another's", demo{}, os.Stderr, "no live table"},
		{"lines only", demo{plain: true}, os.Stderr, ""},
		{"it stays", demo{stay: true}, nil, "the nodes stay until this is stopped"},
		{"it ends after the acts", demo{once: true}, os.Stderr, ""},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			in := os.Stdin
			defer func() { os.Stdin = in }()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			os.Stdin = r
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var said bytes.Buffer
			ended := make(chan error, 1)
			told := make(chan bool, 1)
			go func() {
				ended <- c.demo.last(ctx, acts.Stage(nil), c.terminal, screen.Paint{}, func(text string) { said.WriteString(text); told <- true })
			}()
			if c.demo.stay {
				<-told
				if len(ended) > 0 {
					t.Error("it did not stay")
				}
				stop()
			}
			if err := <-ended; err != nil || !strings.Contains(said.String(), c.says) || (c.says == "") != (said.Len() == 0) {
				t.Errorf("said %q, %v; want %q", &said, err, c.says)
			}
		})
	}
}
