package conntrack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// victimEnv names the file whose table the process is to write until it is killed.
const victimEnv = "LACE_CONNTRACK_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimEnv); path != "" {
		fmt.Fprintln(os.Stderr, victim(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// shared maps a file as the pinned arrays are mapped. It stays so until the process ends.
func shared(path string) (memory, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return memory{}, err
	}
	defer f.Close()
	m := newMemory(RoundSlots(1024))
	size := len(m.slots) + len(m.tags)
	if err := f.Truncate(int64(size)); err != nil {
		return memory{}, err
	}
	all, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return memory{}, err
	}
	return memory{all[:len(m.slots)], all[len(m.slots):]}, nil
}

// victim makes, re-decides and ends flows without a pause; it says so once.
func victim(path string) error {
	mem, err := shared(path)
	if err != nil {
		return err
	}
	table, _, err := mem.open()
	if err != nil {
		return err
	}
	fmt.Println("writing")
	for i := 0; ; i++ {
		s := []service{tcp4, udp6}[i%2]
		fwd, rev := s.connect(i%64, uint16(1+i%7), 1+i%5)
		if table.Insert(fwd, rev, uint32(i)) == Exists {
			again, againRev := s.connect(i%64, uint16(1+i%7), 1+rand.IntN(5))
			table.Replace(fwd, again, againRev, uint32(i))
		}
		if f := again(s, i); table.Lookup(&f.Tuple, f) {
			table.Delete(f)
		}
	}
}

func again(s service, i int) *Flow {
	fwd, _ := s.connect((i+32)%64, uint16(1+i%7), 1)
	return fwd
}

// A writer killed with -9 leaves a table that goes on; flows that it was not writing at
// that moment are what they were.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flows")
	mem, err := shared(path)
	if err != nil {
		t.Fatal(err)
	}
	table, _, err := mem.open()
	if err != nil {
		t.Fatal(err)
	}
	var quiet []*Flow
	for i := range 50 {
		fwd, rev := tcp6.connect(i, 5000, 9)
		fwd.State, rev.State = StateSYN|StateACK, StateSYN|StateACK // established: never evicted
		mustInsert(t, table, fwd, rev, 1)
		quiet = append(quiet, fwd)
	}
	torn, half := 0, 0
	for range 12 {
		killVictim(t, path)
		table, report, err := mem.open()
		if err != nil {
			t.Fatal(err)
		}
		if report.Damaged != 0 {
			t.Fatalf("a killed writer leaves damage: %+v", report)
		}
		torn, half = torn+report.Torn, half+report.Half
		checked(t, table)
		for _, want := range quiet {
			var got Flow
			if !table.Lookup(&want.Tuple, &got) || got != *want {
				t.Fatalf("%v is %+v", want.Tuple, got)
			}
		}
	}
	t.Logf("12 kills left %d torn slots and %d half pairs", torn, half)
}

// killVictim starts a writer, lets it write for some milliseconds and kills it.
func killVictim(t *testing.T, path string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, readErr := out.Read(make([]byte, 64))
	// When it dies is arbitrary; a test of any moment needs no fixed one.
	time.Sleep(time.Duration(rand.IntN(5_000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if readErr != nil {
		t.Fatalf("the writer never began: %v", readErr)
	}
}
