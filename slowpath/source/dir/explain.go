package dir

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// explain puts an error of the decoder into words, with the path of the field when it
// says so.
func explain(err error) (field, message string) {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return wrongType.Field, fmt.Sprintf("a %s where %s is wanted", wrongType.Value, goType(wrongType.Type.String()))
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return "", err.Error()
	}
	var words []string
	for _, e := range strict.Errors() {
		words = append(words, e.Error())
		if f, ok := e.(interface{ FieldPath() string }); ok && field == "" {
			field = f.FieldPath()
		}
	}
	return field, strings.Join(words, ", ")
}

// goType is a type as people who write YAML call it.
func goType(t string) string {
	switch {
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a number"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map["), strings.Contains(t, "."):
		return "an object"
	}
	return "a " + t
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
