package eligible_test

import (
	"os"
	"strings"
	"testing"

	"lace-cni.io/lace/control/eligible"
)

// TestWordsAreDocumented: each list and the page's table of it hold the same rows.
func TestWordsAreDocumented(t *testing.T) {
	const path = "../../docs/reference/eligibility.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]eligible.Word{"Reason": eligible.Reasons(), "Tier": eligible.Tiers(), "Note": eligible.Notes()}
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || !strings.HasPrefix(line, "| `") {
			continue
		}
		rows[strings.Trim(strings.TrimSpace(cells[0]), "`")] = strings.TrimSpace(cells[1])
	}
	for list, words := range lists {
		for _, w := range words {
			if rows[w.Name] != w.Help {
				t.Errorf("%s %s: %s says %q, the code %q", list, w.Name, path, rows[w.Name], w.Help)
			}
			delete(rows, w.Name)
		}
	}
	for name := range rows {
		t.Errorf("%s has a row %q that the code does not know", path, name)
	}
}
