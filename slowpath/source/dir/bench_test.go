package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// largeFolder is 10,000 Services with 10 endpoints each, in 100 files.
func largeFolder(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	for f := range 100 {
		var text strings.Builder
		for i := f * 100; i < f*100+100; i++ {
			fmt.Fprintf(&text, "apiVersion: v1\nkind: Service\nmetadata:\n  name: s%d\n  namespace: bench\nspec:\n  clusterIP: 10.96.%d.%d\n  ports:\n  - name: http\n    port: 80\n---\n", i, i>>8, i&255)
			fmt.Fprintf(&text, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: s%d-1\n  namespace: bench\n  labels:\n    kubernetes.io/service-name: s%d\naddressType: IPv4\nports:\n- name: http\n  port: 8080\nendpoints:\n", i, i)
			for e := range 10 {
				fmt.Fprintf(&text, "- addresses:\n  - 10.%d.%d.%d\n  nodeName: n%d\n  conditions:\n    ready: true\n", 128+i>>8, i&255, e, e)
			}
			text.WriteString("---\n")
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.yaml", f)), []byte(text.String()), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// BenchmarkFolder reads 10,000 Services with 10 endpoints each: from nothing, after one
// document changed, and when nothing did.
func BenchmarkFolder(b *testing.B) {
	dir := largeFolder(b)
	later := time.Now().Add(time.Hour)
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if out := newFolder(dir, time.Millisecond).look(later, later); len(out.changes) != 20_000 || len(out.problems) > 0 {
				b.Fatalf("%d changes, problems %v", len(out.changes), out.problems)
			}
		}
	})
	d := newFolder(dir, time.Millisecond)
	d.look(later, later)
	b.Run("one", func(b *testing.B) {
		path := filepath.Join(dir, "50.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			edited := strings.Replace(string(text), "nodeName: n3", fmt.Sprintf("nodeName: x%d", i), 1)
			if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
				b.Fatal(err)
			}
			if out := d.look(later, later); len(out.changes) != 1 {
				b.Fatalf("%d changes", len(out.changes))
			}
		}
	})
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.look(later, later)
		}
	})
}
