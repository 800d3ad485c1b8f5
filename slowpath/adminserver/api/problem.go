package api

import "fmt"

// Problem is something that could not be honoured.
type Problem struct {
	Kind    string `json:"kind"`
	Object  string `json:"object"`
	Field   string `json:"field,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Place   Place  `json:"place,omitzero"` // of the object, where it is of a folder
}

// Place is where the object of a Problem is written.
type Place struct {
	File     string `json:"file"`
	Document int    `json:"document"`       // of the file, from 1
	Line     int    `json:"line"`           // of the file, from 1, where the document begins
	Item     string `json:"item,omitempty"` // of a list, as items[3]
}

// String is the place in the words of a Problem; empty: none.
func (p Place) String() string {
	if p.File == "" {
		return ""
	}
	s := fmt.Sprintf("%s document %d line %d", p.File, p.Document, p.Line)
	if p.Item != "" {
		s += " " + p.Item
	}
	return s
}
