package dir

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// fault is one thing that the decoder did not take.
type fault struct {
	field   string // path; may be empty
	message string // without the path
}

// faults puts an error of the decoder into words, each thing for itself.
func faults(err error) (out []fault) {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return []fault{{wrongType.Field, fmt.Sprintf("%s where %s is wanted", given(wrongType.Value), goType(wrongType.Type))}}
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return []fault{{"", err.Error()}}
	}
	for _, e := range strict.Errors() {
		f := fault{message: e.Error()}
		if at, ok := e.(interface{ FieldPath() string }); ok {
			f.field = at.FieldPath()
			f.message = strings.TrimSuffix(f.message, fmt.Sprintf(" %q", f.field))
		}
		out = append(out, f)
	}
	return out
}

// given is what was found, as people who write YAML call it.
func given(value string) string {
	switch kind, number, _ := strings.Cut(value, " "); {
	case number != "":
		return "the " + kind + " " + number
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "bool":
		return "true or false"
	}
	return "a " + value
}

// goType is a type as people who write YAML call it.
func goType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int32:
		return "a whole number up to 2147483647"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a " + t.String()
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

// shiftLines makes line numbers in a document those of its file.
func shiftLines(err error, first int) string {
	return lineNumber.ReplaceAllStringFunc(err.Error(), func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return fmt.Sprintf("line %d", n+first-1)
	})
}
