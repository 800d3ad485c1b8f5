package main

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"lace-cni.io/lace/cmd/lace/preflight"
	"lace-cni.io/lace/cmd/lace/screen"
	"lace-cni.io/lace/slowpath/adminserver/api"
)

// writeFindings gives each finding a line, and one more for what to do about it; the last line
// is what they come to. Programs get the findings.
func writeFindings(w io.Writer, f screen.Format, findings []preflight.Finding, outcome string) error {
	if f.ForPrograms() {
		return screen.Encode(w, f, api.List[preflight.Finding]{Items: findings})
	}
	findings = fewProblems(findings)
	paint := screen.Paint{}
	if file, isFile := w.(*os.File); isFile {
		paint = screen.NewPaint(file, false)
	}
	colour := map[preflight.Verdict]func(string) string{
		preflight.OK: paint.Good, preflight.Warn: paint.Warn, preflight.Fail: paint.Bad,
	}
	width := 0
	for _, x := range findings {
		width = max(width, utf8.RuneCountInString(screen.Plain(x.Check)))
	}
	for _, x := range findings {
		screen.Printf(w, "%s  %-*s  %s\n", screen.Painted(colour[x.Verdict](fmt.Sprintf("%-4s", x.Verdict))), width, x.Check, x.Found)
		if x.Do != "" {
			screen.Printf(w, "      %-*s  → %s\n", width, "", x.Do)
		}
	}
	screen.Printf(w, "\n%s\n", outcome)
	return nil
}

// mostProblems are shown of an agent's: the rest of the findings is not to be looked for among
// hundreds.
const mostProblems = 20

// fewProblems leaves out Problems that keep nothing from running and that lace get problems
// lists, and says how many.
func fewProblems(findings []preflight.Finding) (out []preflight.Finding) {
	shown, left := 0, 0
	for _, x := range findings {
		listed := x.Problem != nil && x.Verdict == preflight.Warn
		if listed && shown == mostProblems {
			left++
			continue
		}
		if listed {
			shown++
		}
		out = append(out, x)
	}
	if left > 0 {
		out = append(out, preflight.Finding{Verdict: preflight.Warn, Check: "problems", Found: fmt.Sprintf("and %d more: lace get problems", left)})
	}
	return out
}
