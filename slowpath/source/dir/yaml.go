package dir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	parser "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// toJSON reads a text that is one YAML document and nothing beside. Lines that its errors name
// count from 1.
func toJSON(text []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	if !whole(text) {
		err = beyond(text)
	}
	return out, err
}

// others are what may end a document where nothing else shows it: directives, and line breaks
// that are no line feeds.
var others = [][]byte{[]byte("\n%"), []byte("\r"), []byte("\u0085"), []byte("\u2028"), []byte("\u2029")}

// whole reports whether a text that could be read was read to its end for certain: it was when
// it is a mapping with keys at the beginning of the line, as almost every text is. A text or a
// list is none either way.
func whole(text []byte) bool {
	at := lead(text)
	if at == len(text) || at > 0 && text[at-1] != '\n' || text[at]|0x20 < 'a' || text[at]|0x20 > 'z' {
		return false
	}
	for _, o := range others {
		if bytes.Contains(text, o) {
			return false
		}
	}
	return true
}

// beyond says what follows the first document of a text. The reader of YAML leaves it alone: it
// reads documents one by one.
func beyond(text []byte) error {
	d := parser.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&passedBy{})
	if err == nil {
		err = d.Decode(&passedBy{})
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("a second document begins at a line break that is no line feed; write line feeds")
	}
	line := 1
	if at := lineNumber.FindStringSubmatch(err.Error()); at != nil { // it counts from 0 there
		line, _ = strconv.Atoi(at[1])
		line++
	}
	return fmt.Errorf("line %d: the document has ended before this, which is not read", line)
}

// passedBy takes any document and looks at nothing of it.
type passedBy struct{}

// UnmarshalYAML implements parser.Unmarshaler.
func (*passedBy) UnmarshalYAML(func(any) error) error { return nil }
