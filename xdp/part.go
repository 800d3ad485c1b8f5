package xdp

// Part is what somebody may take away or change under a running fast path.
type Part uint8

const (
	PartTrunk     Part = iota // a device of the trunk: its state, addresses or offloads
	PartNamespace             // the mount that keeps the trunk's namespace
	PartProgram               // an attached program
	PartLinkPin               // the pin of an attachment: removed, or of something else
	PartMapPin                // the pin of a map, likewise
	PartSocket                // a worker's socket in the kernel's map
	PartEntries               // what a map holds
)

// Repaired is told of each part that was put right, and which one it was. nil: nobody is.
type Repaired func(p Part, which string)

func (r Repaired) tell(p Part, which string) {
	if r != nil {
		r(p, which)
	}
}
