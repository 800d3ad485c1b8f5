package publish_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"lace-cni.io/lace/control/model"
	"lace-cni.io/lace/slowpath/publish"
	"lace-cni.io/lace/slowpath/source"
)

var ten = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}

func tenThousand() []source.Change {
	var out []source.Change
	for i := range 10_000 {
		out = append(out, pair(i, ten...)...)
	}
	return out
}

// BenchmarkCold takes 10,000 Services with 10 endpoints each from objects to the written
// snapshot.
func BenchmarkCold(b *testing.B) {
	all := tenThousand()
	b.ReportAllocs()
	for b.Loop() {
		p := runUnready(b, publish.Config{Path: filepath.Join(b.TempDir(), "snapshot")})
		p.Apply(all, nil)
		p.Synced()
		p.SetAttachments(model.Attachments{}, nil)
		settled(b, p)
	}
}

// BenchmarkOneEndpoint changes one endpoint among 100,000, from the source's call to the
// written snapshot, the settling of 2 ms included. It also reports what all of it keeps
// in memory, the Kubernetes objects included.
func BenchmarkOneEndpoint(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := run(b, publish.Config{Path: filepath.Join(b.TempDir(), "snapshot")})
	p.Apply(tenThousand(), nil)
	settled(b, p)
	runtime.GC()
	runtime.ReadMemStats(&after)
	either := []source.Change{sliceOf(7, ten[:9]...), sliceOf(7, ten...)}
	var worst time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		changed := p.Changed()
		p.Apply([]source.Change{either[i%2]}, nil)
		<-changed
		worst = max(worst, time.Since(begin))
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-kept")
}
