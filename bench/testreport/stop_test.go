package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ender cancels a run when a line of the report has a part.
type ender struct {
	bytes.Buffer
	part string
	end  func()
}

func (e *ender) Write(b []byte) (int, error) {
	if strings.Contains(string(b), e.part) {
		e.end()
	}
	return e.Buffer.Write(b)
}

// A run that is stopped ends its tests, and says what came of those that had ended, what
// failed among them, and which had not ended. What is said by tests that die is no result.
func TestStoppedRun(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
trap 'echo "{\"Action\":\"fail\",\"Package\":\"q\"}"; exit 1' TERM
cat <<'END'
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"a_test.go:7: wrong\n"}
{"Action":"start","Package":"q"}
{"Action":"run","Package":"q","Test":"B"}
{"Action":"run","Package":"q","Test":"B/x"}
{"Action":"run","Package":"q","Test":"C"}
{"Action":"pause","Package":"q","Test":"C"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Elapsed":0.1}
END
for i in $(seq 600); do sleep 0.1; done
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &ender{part: "failed: A", end: stop}
	r, err := runTests(ctx, out, []string{"./..."}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	r.Close(out)
	for _, want := range []string{"   failed: A\n", "wrong", " stopped; under way was: q B/x\n", "\n0 passed, 1 failed, 0 skipped, stopped before the end\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if !r.Failed() {
		t.Error("a run that was stopped counts as passed")
	}
}

// A run that was stopped fails, whatever had passed.
func TestStoppedRunFails(t *testing.T) {
	r, _ := read(t, `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Elapsed":0.1}`)
	if r.Failed() {
		t.Fatal("a whole run failed")
	}
	if r.stopped = true; !r.Failed() {
		t.Error("a run that was stopped counts as passed")
	}
}
