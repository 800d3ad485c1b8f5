package dir

// Limits of what is read.
const (
	MaxEntries  = 16384     // directory entries of any kind
	MaxFiles    = 4096      // files that are read
	MaxFileSize = 64 << 20  // bytes of one file
	MaxTotal    = 256 << 20 // bytes of all files
	MaxObjects  = 500_000
)

// limits are the same as a value, so that tests can lower them.
type limits struct {
	entries, files, objects int
	fileSize, total         int64
}

var defaultLimits = limits{MaxEntries, MaxFiles, MaxObjects, MaxFileSize, MaxTotal}
