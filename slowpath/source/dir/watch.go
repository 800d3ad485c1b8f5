package dir

import (
	"log/slog"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// watcher gives notice of changes in a folder, as far as the kernel can. Whoever uses it
// polls as well: links that lead out of the folder, and folders that are not there yet,
// give no notice.
type watcher struct {
	path    string
	log     *slog.Logger
	notices chan struct{} // of one: many notices are one
	inner   *fsnotify.Watcher
	watched version // of the folder, by device and inode
	said    bool
	done    chan struct{}
}

// watch begins. It never fails: without the kernel's help there are no notices.
func watch(path string, log *slog.Logger) *watcher {
	w := &watcher{path: path, log: log, notices: make(chan struct{}, 1), done: make(chan struct{})}
	inner, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("changes of the folder are found by looking, not by notice", "path", path, "error", err)
		close(w.done)
		return w
	}
	w.inner = inner
	w.renew()
	go w.forward()
	return w
}

// forward turns events into notices until the watcher is closed.
func (w *watcher) forward() {
	defer close(w.done)
	for {
		select {
		case _, ok := <-w.inner.Events:
			if !ok {
				return
			}
		case err, ok := <-w.inner.Errors: // lost events, for instance: look at everything
			if !ok {
				return
			}
			w.log.Warn("notices of the folder were lost, it is looked at", "path", w.path, "error", err)
		}
		select {
		case w.notices <- struct{}{}:
		default:
		}
	}
}

// renew watches the folder that is at the path now, if it is another one.
func (w *watcher) renew() {
	if w.inner == nil {
		return
	}
	var st unix.Stat_t
	if unix.Stat(w.path, &st) != nil {
		return // not there: the next look says so
	}
	now := version{device: st.Dev, inode: st.Ino}
	if now == w.watched {
		return
	}
	if w.watched != (version{}) {
		_ = w.inner.Remove(w.path) // gone with the old folder already, as a rule
	}
	if err := w.inner.Add(w.path); err != nil {
		w.complain(err)
		return
	}
	w.watched, w.said = now, false
}

func (w *watcher) complain(err error) {
	if !w.said {
		w.log.Warn("changes of the folder are found by looking, not by notice", "path", w.path, "error", err)
	}
	w.said = true
}

func (w *watcher) close() {
	if w.inner != nil {
		_ = w.inner.Close()
	}
	<-w.done
}
