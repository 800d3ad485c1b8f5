package counter

// Repair is a thing that somebody took away or changed under the running fast path, and
// that the fast path has put right. Numbers may be appended, never reused: each is a gauge
// of the file.
type Repair uint8

const (
	RepairTrunk     Repair = iota // the trunk's devices: made anew, set up, or set as they have to be
	RepairNamespace               // trunk.netns mounted again
	RepairProgram                 // a program attached again
	RepairLinkPin                 // the pin of an attachment made again
	RepairMapPin                  // the pin of a map made again
	RepairSocket                  // a worker's socket entered again in the kernel's map
	RepairCounters                // the counter file written anew
	RepairStatus                  // fastpath.json written anew
	RepairEntries                 // entries of a kernel map written again

	Repairs // number of repairs
)

var repairNames = [Repairs]string{
	"trunk", "namespace", "program", "link-pin", "map-pin", "socket", "counters", "status", "entries",
}

// String is the word used in metrics.
func (r Repair) String() string {
	if r >= Repairs {
		return "unknown"
	}
	return repairNames[r]
}

// Gauge is where the file holds how often it was repaired since the process began.
func (r Repair) Gauge() Gauge { return firstRepair + Gauge(r) }
