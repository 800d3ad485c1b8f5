// Package dir is a source that reads a folder of ordinary Kubernetes YAML: Services,
// EndpointSlices, Nodes and lists of them, in any mix of files and documents.
//
// Files end in .yaml, .yml or .json; others, hidden files and sub-folders are not
// looked at. Symbolic links are followed, so that a mounted ConfigMap works and a whole
// folder can be swapped. What a file says is taken strictly: an unknown or repeated
// field, or an unknown kind, is a Problem and not a guess.
//
// A change is taken when its file has been quiet for a moment. A file that is wrong,
// unreadable, empty or too large keeps the last good state of its objects: right
// documents in it are taken, and objects that are missing from it stay until it is
// right. A file that is removed removes its objects. An object that is in two places is
// taken from the first file by name, the other is a Problem.
//
// It must never write, follow a file that is no regular one or one that the kernel makes
// up, wait for a file that does not answer, or read without bound; see Limits. It owns the memory of what each file said last, and
// so where each object is written; see Places.
//
// Cost: one stat per file and pass, a pass per change and per poll. Documents that did
// not change are not parsed again.
//
// Flow: notice (fsnotify or poll) → list → read what settled → documents → objects →
// what differs from what was delivered → sink.
package dir
