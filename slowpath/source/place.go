package source

import "lace-cni.io/lace/control/model"

// Place is where an object is written.
type Place struct {
	File     string
	Document int // of the file, from 1, as Problems count them
	Line     int // of the file, from 1: the first one of the document that is not empty

	Item string // of a list, as items[3]; empty: the object is the document
}

// Placer is a Source whose objects are written where people find them.
type Placer interface {
	Source

	// Place is where the object that a Problem is about is written at this moment; zero: the
	// Problem is about none, or it names file and document itself. Any goroutine may call it.
	Place(p model.Problem) Place
}
