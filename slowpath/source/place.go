package source

import (
	"fmt"

	"lace-cni.io/lace/control/model"
)

// Place is where an object is written, or something that could not be read.
type Place struct {
	File     string
	Document int // of the file, from 1, as Problems count them; 0: the file as a whole
	Line     int // of the file, from 1: the first one of the document that is not empty, or that of the mistake; 0: as above

	Item string // of a list, as items[3]; empty: the document
}

// String is the place in the words of a Problem; empty: none.
func (p Place) String() string {
	s := p.File
	if p.Document > 0 {
		s += fmt.Sprintf(" document %d line %d", p.Document, p.Line)
	}
	if p.Item != "" {
		s += " " + p.Item
	}
	return s
}

// Placer is a Source whose objects are written where people find them.
type Placer interface {
	Source

	// Place is where at this moment the object is written that a Problem is about, or what could
	// not be read; zero: the Problem is about neither. Any goroutine may call it.
	Place(p model.Problem) Place
}
