package adminserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"lace-cni.io/lace/slowpath/adminserver/api"
)

// answer registers a question. The whole answer is made before the first byte of it is
// written, so that a slow reader holds nothing of the agent's.
func answer[T any](mux *http.ServeMux, path string, make func(*http.Request) (T, error)) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		v, err := make(r)
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, v)
	})
}

func write(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":%q}`, err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a reader that went away needs no answer
}

// refuse answers with what is wrong. Errors that name no status are something missing on
// the node rather than in the question.
func refuse(w http.ResponseWriter, err error) {
	var refused *api.RefusedError
	status := http.StatusServiceUnavailable
	if errors.As(err, &refused) {
		status = refused.Status
	}
	write(w, status, api.Error{Message: err.Error()})
}

func badQuestion(format string, args ...any) error {
	return &api.RefusedError{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &api.RefusedError{Status: http.StatusNotFound, Message: fmt.Sprintf(format, args...)}
}

// list is never null in JSON.
func list[T any](items []T) api.List[T] {
	if items == nil {
		items = []T{}
	}
	return api.List[T]{Items: items}
}
