package dir

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLimitsAreDocumented: the page names the numbers that hold.
func TestLimitsAreDocumented(t *testing.T) {
	const path = "../../../docs/reference/folder.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(b), "\n", " ")
	for _, want := range []string{
		fmt.Sprintf("%d directory entries", MaxEntries), fmt.Sprintf("%d files", MaxFiles),
		fmt.Sprintf("%d bytes a file", MaxFileSize), fmt.Sprintf("%d bytes together", MaxTotal),
		fmt.Sprintf("%d objects", MaxObjects), fmt.Sprintf("More than %d files", MaxFiles),
		fmt.Sprintf("More than %d directory entries", MaxEntries), fmt.Sprintf("%d such files", MaxSlow), "quiet for 50 ms",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
	if MaxWait.Milliseconds() != 500 || MaxWaitOnce.Minutes() != 1 {
		t.Errorf("the page says half a second and a minute, the code %v and %v", MaxWait, MaxWaitOnce)
	}
	if DefaultSettle.Milliseconds() != 50 || DefaultPoll.Seconds() != 1 {
		t.Errorf("the page says 50 ms and a second, the code %v and %v", DefaultSettle, DefaultPoll)
	}
}
