package screen

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Format is the value of the flag -o.
type Format string

const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats lists the values in the order of the help text.
var Formats = []Format{Table, Wide, JSON, YAML}

// String, Set and Type make a Format a flag (pflag.Value).
func (f *Format) String() string { return string(*f) }

func (f *Format) Type() string { return "format" }

func (f *Format) Set(s string) error {
	for _, known := range Formats {
		if Format(s) == known {
			*f = known
			return nil
		}
	}
	return fmt.Errorf("say one of %s", Choices())
}

// Choices names the formats for help and errors.
func Choices() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// ForPrograms says that the format is to be read by a program.
func (f Format) ForPrograms() bool { return f == JSON || f == YAML }

// Encode writes v as JSON or YAML.
func Encode(w io.Writer, f Format, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write as %s: %w", f, err)
	}
	if f == YAML {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return fmt.Errorf("write as %s: %w", f, err)
		}
		_, err = w.Write(b)
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}
