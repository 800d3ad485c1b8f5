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
	remedy  string
}

// faults puts an error of the decoder into words, each thing for itself.
func faults(err error) (out []fault) {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return []fault{{wrongType.Field, fmt.Sprintf("%s where %s is wanted", given(wrongType.Value), goType(wrongType.Type)), remedy(wrongType)}}
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return []fault{{"", err.Error(), correct}}
	}
	for _, e := range strict.Errors() {
		f := fault{message: e.Error(), remedy: correct}
		if at, ok := e.(interface{ FieldPath() string }); ok {
			f.field = at.FieldPath()
			f.message = strings.TrimSuffix(f.message, fmt.Sprintf(" %q", f.field))
		}
		out = append(out, f)
	}
	return out
}

const correct = "correct or remove it"

// remedy is what to do about a value of the wrong type. YAML takes more words for true and false,
// and more for numbers, than people who write a name think of.
func remedy(wrong *json.UnmarshalTypeError) string {
	if kind, _, _ := strings.Cut(wrong.Value, " "); wrong.Type.Kind() == reflect.String && (kind == "bool" || kind == "number") {
		return "quote it"
	}
	return correct
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

var (
	lineNumber = regexp.MustCompile(`line (\d+)`)
	lineFirst  = regexp.MustCompile(`^line (\d+): `)
)

// yamlFault puts an error of the YAML reader into one line of words. The lines that they name
// are those of the file, in which the document begins at line first. line is the first one that
// the error names, and is not in the words; 0: it names none.
func yamlFault(err error, first int) (message string, line int) {
	text := lineNumber.ReplaceAllStringFunc(err.Error(), func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return fmt.Sprintf("line %d", n+first-1)
	})
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		text = strings.TrimPrefix(text, prefix)
	}
	var faults []string
	for s := range strings.Lines(text) {
		if s = strings.TrimSpace(s); s != "" {
			faults = append(faults, s)
		}
	}
	message = strings.Join(faults, ", ")
	if at := lineFirst.FindStringSubmatch(message); at != nil {
		line, _ = strconv.Atoi(at[1]) // 0 where it is no number
		message = message[len(at[0]):]
	}
	return message, line
}
